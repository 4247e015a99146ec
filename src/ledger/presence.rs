//! Whether the process behind a lease still exists, if it ran on this machine.

use std::path::Path;
use std::sync::LazyLock;

use crate::id::Owner;

/// This process, as an owner of leases.
static ME: LazyLock<Owner> = LazyLock::new(Owner::this_process);

/// Whether `owner` is a process of this machine that has ended, so that its leases are free.
///
/// `false` if that is uncertain: another machine, boot or container, a process number in use, or no `/proc`.
/// If the answer is wrong, the fence still keeps the loser from writing.
pub fn is_gone(owner: &str) -> bool {
    let (Some((home, pid)), Some((my_home, _))) = (parts(owner), parts(ME.as_str())) else { return false };
    // Process 1 always exists; if it is hidden from us, others are, too.
    home == my_home && Path::new("/proc/1").exists() && !Path::new(&format!("/proc/{pid}")).exists()
}

/// The host and kernel in which a process number is valid, and the number.
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
