//! Whether the process behind a lease still exists, as far as this machine can tell.

use std::path::Path;

use crate::id::Owner;

/// Whether `owner` is a process of this machine that has ended, so that its leases need not be waited for.
///
/// `false` when in doubt: another machine, another process number that is in use, or no way to look. If the answer
/// is wrong (two containers with one host name), the fence still keeps the loser from writing.
pub fn is_gone(owner: &str, me: &Owner) -> bool {
    let parts = |text: &str| -> Option<(String, u32)> {
        let mut parts = text.rsplitn(3, '/').skip(1);
        let pid = parts.next()?.parse().ok()?;
        Some((parts.next()?.to_owned(), pid))
    };
    let (Some((host, pid)), Some((my_host, _))) = (parts(owner), parts(me.as_str())) else { return false };
    host == my_host && Path::new("/proc/self").exists() && !Path::new(&format!("/proc/{pid}")).exists()
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
        let host = me.as_str().split('/').next().unwrap().to_owned();
        assert!(!is_gone(me.as_str(), &me), "we live");
        assert!(is_gone(&format!("{host}/4294967295/x"), &me));
        assert!(!is_gone("elsewhere/4294967295/x", &me));
        assert!(!is_gone("nonsense", &me));
        assert_eq!(shown_owner("alpha/12/ab"), "process 12 on alpha");
    }
}
