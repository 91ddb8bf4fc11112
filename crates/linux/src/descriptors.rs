//! How many descriptors the process may have.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Has the operating system allow `wanted` descriptors, or as many as it does.
pub fn allow(wanted: u64) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let most = maximum.map(|most| most.max(wanted));
    // Root may raise even what is allowed at most. Where it is refused, there is room for fewer.
    if current.is_some_and(|current| current < wanted)
        && setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).is_err()
    {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}
