//! Whether the process behind a lease still exists, as far as this machine can tell.

use std::path::Path;

use crate::id::Owner;

/// Whether `owner` is a process of this machine that has ended, so that its leases need not be waited for.
///
/// `false` when in doubt: another machine, boot or container, a process number that is in use, or no way to look.
/// If the answer is wrong, the fence still keeps the loser from writing.
pub fn is_gone(owner: &str, me: &Owner) -> bool {
    let (Some((home, pid)), Some((my_home, _))) = (parts(owner), parts(me.as_str())) else { return false };
    // The first process is always there; if it is hidden from us, so are others.
    home == my_home && Path::new("/proc/1").exists() && !Path::new(&format!("/proc/{pid}")).exists()
}

/// Where a process number means something (host and kernel), and the number.
fn parts(owner: &str) -> Option<((&str, &str), u32)> {
    let mut parts = owner.rsplitn(3, '/');
    let (kernel, _) = parts.next()?.rsplit_once('-')?;
    let pid = parts.next()?.parse().ok()?;
    Some(((parts.next()?, kernel), pid))
}

/// An owner for people: `process 4711 on host`.
pub fn shown_owner(owner: &str) -> String {
    let mut parts = owner.rsplitn(3, '/').skip(1);
    match (parts.next(), parts.next()) {
        (Some(pid), Some(host)) => format!("process {pid} on {host}"),
        _ => owner.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_dead_process_of_this_machine_is_gone() {
        let me = Owner::this_process();
        let ((host, kernel), _) = parts(me.as_str()).unwrap();
        assert!(!is_gone(me.as_str(), &me), "we live");
        assert!(is_gone(&format!("{host}/4294967295/{kernel}-x"), &me));
        assert!(!is_gone(&format!("{host}/4294967295/other-x"), &me), "another boot or container");
        assert!(!is_gone(&format!("elsewhere/4294967295/{kernel}-x"), &me));
        assert!(!is_gone("nonsense", &me));
        assert_eq!(shown_owner("alpha/12/ab"), "process 12 on alpha");
    }
}
