//! Whether the process behind a lease still exists, as far as this machine can tell.

use std::path::Path;
use std::sync::LazyLock;

use crate::id::Owner;

/// This process, as it would sign a lease.
static ME: LazyLock<Owner> = LazyLock::new(Owner::this_process);

/// Whether `owner` is a process of this machine that has ended, so that its leases need not be waited for.
///
/// `false` when that is uncertain: another machine, boot or container, a process number that is in use, or no way to look.
/// If the answer is wrong, the fence still keeps the loser from writing.
pub fn is_gone(owner: &str) -> bool {
    let (Some((home, pid)), Some((my_home, _))) = (parts(owner), parts(ME.as_str())) else { return false };
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
        assert!(!is_gone(me.as_str()), "we live");
        assert!(is_gone(&format!("{host}/4294967295/{kernel}-x")));
        assert!(!is_gone(&format!("{host}/4294967295/other-x")), "another boot or container");
        assert!(!is_gone(&format!("elsewhere/4294967295/{kernel}-x")));
        assert!(!is_gone("nonsense"));
        assert_eq!(shown_owner("alpha/12/ab"), "process 12 on alpha");
    }
}
