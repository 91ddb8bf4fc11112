//! The limit of the process's file descriptors.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Asks the operating system to allow `wanted` descriptors, or as many as it does.
pub fn allow(wanted: u64) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let most = maximum.map(|most| most.max(wanted));
    // Root may raise even the hard limit. If the kernel refuses that, the hard limit has to do.
    if current.is_some_and(|current| current < wanted)
        && setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).is_err()
    {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}
