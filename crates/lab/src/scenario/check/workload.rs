//! Checks the data of the connection.

use units::text::Text;
use units::{ByteCount, Rate};

use super::Complaint;
use super::traffic::{NO_PICTURE, NO_PICTURE_REMEDY, check_rate, check_video, refuse_varied};
use crate::scenario::vary::{draw_of, most};
use crate::scenario::{Workload, WorkloadKind};

/// Maximum number of connections of one run.
const CONNECTIONS_MAX: u32 = 1000;

/// Maximum number of octets to send: the command computes digests of the data sent and received.
const SIZE_MAX: ByteCount = ByteCount(100_000_000_000);

/// Whether a kind of workload has a field.
#[derive(Clone, Copy, PartialEq)]
enum Use {
    Needed,
    Allowed,
    Refused,
}

pub(super) fn check_workload(workload: &Workload, found: &mut Vec<Complaint>) {
    let kind = workload.kind.name();
    for (field, given, wanted) in fields(workload) {
        let (problem, remedy) = match (given, wanted) {
            (false, Use::Needed) => {
                (format!("is missing: kind = \"{kind}\" needs it"), format!("add a line `{field} = ...`"))
            }
            (true, Use::Refused) => {
                (format!("contradicts kind = \"{kind}\""), format!("remove {field}, or choose another kind"))
            }
            _ => continue,
        };
        found.push(Complaint::new(format!("workload.{field}"), problem, remedy));
    }
    if workload.connections == 0 || workload.connections > CONNECTIONS_MAX {
        let problem = format!("{} is not a valid number of connections", workload.connections);
        let remedy = "write 1 to 1000; for no connection, choose kind = \"none\"";
        found.push(Complaint::new("workload.connections", problem, remedy));
    }
    let mut refuse = |name: &str, problem: String, remedy: &str| {
        found.push(Complaint::new(format!("workload.{name}"), problem, remedy));
    };
    if let Some(Text(rate)) = workload.rate {
        check_rate(rate, "rate", &mut refuse);
        if workload.kind == WorkloadKind::Video && rate == Rate::ZERO {
            refuse("rate", NO_PICTURE.into(), NO_PICTURE_REMEDY);
        }
    }
    if let Some(video) = &workload.video {
        check_video(video, &mut refuse);
    }
    if let Some(Text(size)) = workload.size.filter(|size| size.0 > SIZE_MAX) {
        refuse(
            "size",
            format!("{size} is more than can be checked at the end"),
            &format!("write at most \"{SIZE_MAX}\""),
        );
    }
    refuse_varied(workload.answers.as_ref(), "answers", &mut refuse);
    if workload.answers.as_ref().and_then(|answers| draw_of(answers).ok()).is_some_and(|draw| most(draw) <= 0.0) {
        refuse("answers", "answers of size zero never arrive".into(), "write a size, like \"20 kB\"");
    }
    refuse_varied(workload.pauses.as_ref(), "pauses", &mut refuse);
}

fn fields(workload: &Workload) -> [(&'static str, bool, Use); 6] {
    let only = |kind: WorkloadKind, wanted: Use| if workload.kind == kind { wanted } else { Use::Refused };
    [
        ("path", workload.path.is_some(), only(WorkloadKind::File, Use::Needed)),
        ("size", workload.size.is_some(), only(WorkloadKind::Generated, Use::Needed)),
        ("rate", workload.rate.is_some(), only(WorkloadKind::Video, Use::Needed)),
        ("video", workload.video.is_some(), only(WorkloadKind::Video, Use::Allowed)),
        ("answers", workload.answers.is_some(), only(WorkloadKind::Requests, Use::Needed)),
        ("pauses", workload.pauses.is_some(), only(WorkloadKind::Requests, Use::Allowed)),
    ]
}
