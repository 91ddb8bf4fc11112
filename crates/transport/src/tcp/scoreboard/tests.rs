use proptest::prelude::*;
use units::Duration;

use super::*;
use crate::ordered_queue::effort;

/// Acknowledging plain segments in one loop leaves the same state as acknowledging them one by one.
#[test]
fn plain_segments_are_acknowledged_like_others() {
    let spoil: [fn(&mut Scoreboard); 4] = [
        |_| {},
        |board| board.sack(&blocks(&[(1500, 1600)]), &mut Delivered::default(), |_| {}),
        |board| {
            board.mark_lost(|sent| sent.seq == SeqNr(1200), |_| false);
        },
        |board| {
            board.mark_lost(|sent| sent.seq == SeqNr(1300), |_| false);
            board.resend(3, Instant::from_millis(20));
        },
    ];
    for spoil in spoil {
        for una in (1000..=2000).step_by(50).map(SeqNr) {
            let acknowledge = |in_one_loop: bool| {
                let (mut board, mut delivered) = (ten(), Delivered::default());
                spoil(&mut board);
                let is_all = in_one_loop && board.acknowledge_plain(una, &mut delivered).1;
                if !is_all {
                    board.acknowledge(una, &mut delivered, |_| {});
                }
                // Only the plain loop counts this.
                delivered.largest_packet = 0;
                format!("{delivered:?} {board:?}")
            };
            assert_eq!(acknowledge(true), acknowledge(false), "up to {una:?}");
        }
    }
}

/// Ten segments of 100 octets from sequence number 1000, sent 1 ms apart.
fn ten() -> Scoreboard {
    ten_in_pieces_of(100)
}

/// As [`ten`], as super-segments.
fn ten_in_pieces_of(piece: u32) -> Scoreboard {
    let mut board = Scoreboard::new(SeqNr(1000));
    (0..10).for_each(|i| board.push(segment(i, piece)));
    board
}

/// Returns the segment `i` of [`ten_in_pieces_of`].
fn segment(i: u32, piece: u32) -> Sent {
    Sent {
        seq: SeqNr(1000 + i * 100),
        len: 100,
        label: Label::NONE.behind(i * 100),
        payload: Payload::from(vec![i as u8; 100]),
        piece,
        sent_at: Instant::from_millis(u64::from(i)),
        push: false,
        fin: false,
        sacked: false,
        lost: false,
        too_big: false,
        retransmitted: false,
        resent: false,
    }
}

fn blocks(ranges: &[(u32, u32)]) -> SackBlocks {
    ranges.iter().map(|(start, end)| SackBlock { start: SeqNr(*start), end: SeqNr(*end) }).collect()
}

#[test]
fn acknowledges_whole_and_partial_segments() {
    let mut board = ten();
    let mut delivered = Delivered::default();
    board.acknowledge(SeqNr(1250), &mut delivered, |_| {});
    assert_eq!((delivered.acked_bytes, delivered.delivered_bytes), (250, 250));
    assert_eq!(delivered.rtt_sent_at, Some(Instant::from_millis(2)));
    let first = board.iter().next().unwrap();
    assert_eq!((first.seq, first.len, first.label), (SeqNr(1250), 50, Label::NONE.behind(250)));
    assert_eq!(board.in_flight(), 750);
}

#[test]
fn sacks_count_once_and_split_at_borders() {
    let mut board = ten_in_pieces_of(50);
    let mut delivered = Delivered::default();
    board.sack(&blocks(&[(1250, 1400)]), &mut delivered, |_| {});
    assert_eq!((delivered.delivered_bytes, board.sacked(), board.in_flight()), (150, 150, 850));
    let mut more = Delivered::default();
    board.sack(&blocks(&[(1250, 1450)]), &mut more, |_| {});
    assert_eq!((more.delivered_bytes, board.sacked()), (50, 200));
    let mut all = Delivered::default();
    board.acknowledge(SeqNr(2000), &mut all, |_| {});
    assert_eq!((all.acked_bytes, all.delivered_bytes), (1000, 800));
    assert_eq!((board.in_flight(), board.sacked(), board.outstanding()), (0, 0, 0));
}

#[test]
fn lies_about_what_was_never_sent_are_ignored() {
    let mut board = ten();
    let mut delivered = Delivered::default();
    board.sack(&blocks(&[(1900, 2100), (900, 1100), (1500, 1400)]), &mut delivered, |_| {});
    // Each bound seems to precede the next: they lie half the sequence space apart.
    let far = SeqNr(1000) + 0x7fff_ffff;
    let circle = SackBlock { start: far, end: far + 0x7fff_ffff };
    board.sack(&core::iter::once(circle).collect(), &mut delivered, |_| {});
    assert_eq!(delivered.delivered_bytes, 0);
}

#[test]
fn small_pieces_do_not_cut_segments() {
    let mut board = ten();
    let mut delivered = Delivered::default();
    board.sack(&blocks(&[(1110, 1120), (1150, 1420)]), &mut delivered, |_| {});
    assert_eq!((board.len(), delivered.delivered_bytes, board.sacked_segments()), (10, 200, 2));
    // The block grows until the segment is whole.
    board.sack(&blocks(&[(1150, 1500)]), &mut delivered, |_| {});
    assert_eq!((board.len(), delivered.delivered_bytes), (10, 300));
    assert_eq!(board.highest_delivered(), SeqNr(1500));
}

#[test]
fn a_super_segment_is_cut_where_its_pieces_end() {
    let mut board = ten_in_pieces_of(30);
    let mut delivered = Delivered::default();
    board.sack(&blocks(&[(1030, 1085)]), &mut delivered, |_| {});
    let cuts: Vec<_> = board.iter().take(4).map(|sent| (sent.seq.0, sent.sacked)).collect();
    assert_eq!(cuts, [(1000, false), (1030, true), (1060, false), (1100, false)]);
    assert_eq!((delivered.delivered_bytes, board.last_piece(30)), (30, Some(12)));
    assert_eq!(board.iter().last().map(|last| (last.seq, last.len)), Some((SeqNr(1990), 10)));
}

/// A loss because of size is no congestion, until the retransmission is lost too.
#[test]
fn a_loss_for_size_is_excused_once() {
    let mut board = ten_in_pieces_of(60);
    board.lose_too_big(59);
    assert_eq!((board.in_flight(), board.has_lost(), board.has_congestive_loss()), (0, true, false));
    board.trim_to(0, 40);
    let now = Instant::from_millis(20);
    for position in 0..3 {
        board.resend(position, now);
    }
    assert_eq!(board.in_flight(), 200);
    board.mark_lost(|sent| sent.seq == SeqNr(1040), |_| false);
    assert!(board.has_congestive_loss());
    let mut delivered = Delivered::default();
    board.acknowledge(SeqNr(1100), &mut delivered, |_| {});
    assert!(board.has_lost() && !board.has_congestive_loss());
    board.acknowledge(SeqNr(2000), &mut delivered, |_| {});
    assert!(!board.has_lost() && board.is_empty() && board.in_flight() == 0);
}

#[test]
fn a_lost_probe_is_excused() {
    let mut board = ten();
    board.mark_lost(|sent| sent.seq == SeqNr(1300), |_| false);
    assert!(!board.excuse_lost(SeqNr(1200)) && !board.excuse_lost(SeqNr(900)) && !board.excuse_lost(SeqNr(1310)));
    assert!(board.has_congestive_loss());
    assert!(board.excuse_lost(SeqNr(1300)) && !board.excuse_lost(SeqNr(1300)));
    assert!(board.has_lost() && !board.has_congestive_loss());
    board.unmark_lost();
    assert!(!board.has_lost() && !board.has_congestive_loss());
}

#[test]
fn overdue_segments_are_judged_once_and_in_order_of_sending() {
    let mut board = ten();
    let judged = |board: &mut Scoreboard, lost_before_ms: u64| {
        let mut seen = Vec::new();
        let result = board.mark_overdue(|sent| {
            seen.push(sent.seq.0);
            let limit = Instant::from_millis(lost_before_ms);
            if sent.sent_at < limit { Fate::Lost } else { Fate::Overdue(sent.sent_at + Duration::from_millis(50)) }
        });
        (result, seen)
    };
    let ((lost, recheck), seen) = judged(&mut board, 2);
    assert_eq!((lost, recheck, seen), (200, Some(Instant::from_millis(52)), vec![1000, 1100, 1200]));
    board.resend(0, Instant::from_millis(20));
    let ((lost, recheck), seen) = judged(&mut board, 3);
    assert_eq!((lost, recheck, seen), (100, Some(Instant::from_millis(53)), vec![1200, 1300, 1000]));
    // The retransmission and all other segments are lost as well.
    let ((lost, recheck), _) = judged(&mut board, 21);
    assert_eq!((lost, recheck, board.in_flight()), (800, None, 0));
    assert_eq!(board.next_to_resend(), Some(0));
}

#[test]
fn lost_segments_are_resent_in_order() {
    let mut board = ten();
    assert_eq!(board.mark_lost(|sent| sent.seq.before(SeqNr(1200)), |_| false), 200);
    assert_eq!((board.lost, board.in_flight()), (200, 800));
    let first = board.next_to_resend().unwrap();
    assert_eq!(board.resend(first, Instant::from_millis(20)).seq, SeqNr(1000));
    assert_eq!(board.in_flight(), 900);
    assert_eq!(board.next_to_resend(), Some(1));
    board.resend(1, Instant::from_millis(20));
    assert_eq!(board.next_to_resend(), None);
    // The retransmission of the first segment is lost as well.
    assert_eq!(board.mark_lost(|sent| sent.seq == SeqNr(1000), |_| false), 100);
    assert_eq!(board.next_to_resend(), Some(0));
    let mut delivered = Delivered::default();
    board.acknowledge(SeqNr(1200), &mut delivered, |_| {});
    assert_eq!((board.lost, board.in_flight(), delivered.rtt_sent_at), (0, 800, None));
}

/// A peer reports everything but the first segment, four times over, and something else in the next ACK: a part of it,
/// or a half in turn with the other one. No segment is walked more than once.
#[test]
fn blocks_cost_what_they_newly_report() {
    const SEGMENTS: u32 = 20_000;
    let (first, middle, last) = (1000, 1000 + SEGMENTS / 2 * 100, 1000 + SEGMENTS * 100);
    let attacks = [
        [vec![(first + 100, last); 4], vec![(first + 100, first + 200)]],
        [vec![(first + 100, middle); 4], vec![(middle, last); 4]],
    ];
    // With `apart`, every second segment was reported before.
    for ([one, other], apart) in attacks.iter().flat_map(|attack| [(attack, false), (attack, true)]) {
        let mut board = Scoreboard::new(SeqNr(first));
        (0..SEGMENTS).for_each(|i| board.push(Sent { seq: SeqNr(first + i * 100), ..segment(i % 10, 100) }));
        for start in (first..last).step_by(200).filter(|_| apart) {
            board.sack(&blocks(&[(start + 100, start + 200)]), &mut Delivered::default(), |_| {});
        }
        let visited = effort::of(|| {
            for _ in 0..1000 {
                board.sack(&blocks(one), &mut Delivered::default(), |_| {});
                board.sack(&blocks(other), &mut Delivered::default(), |_| {});
            }
        });
        assert!(
            visited < 6 * SEGMENTS as usize,
            "{visited} visits to {SEGMENTS} segments: {one:?}, {other:?}, {apart}"
        );
    }
}

proptest! {
    /// Whatever the blocks and their order, the segments inside them are SACKed, and the runs are those of SACKed
    /// segments.
    #[test]
    fn runs_are_those_of_the_segments(
        happenings in proptest::collection::vec((0..3_u8, 0..20_u32, 1..20_u32), 1..30),
        piece in prop_oneof![Just(100_u32), Just(30), Just(50)],
    ) {
        let (mut board, mut una) = (ten_in_pieces_of(piece), 1000);
        for (kind, start, len) in happenings {
            let (start, end) = (1000 + start * 50, (1000 + (start + len) * 50).min(2000));
            match kind {
                0 => {
                    una = una.max(start);
                    board.acknowledge(SeqNr(una), &mut Delivered::default(), |_| {});
                }
                _ if start >= una && start < end => {
                    board.sack(&blocks(&[(start, end)]), &mut Delivered::default(), |_| {});
                    let is_inside = |sent: &&Sent| start <= sent.seq.0 && sent.end().0 <= end;
                    prop_assert!(board.iter().filter(is_inside).all(|sent| sent.sacked));
                }
                _ => {}
            }
            let mut runs: Vec<(u32, u32)> = Vec::new();
            for sent in board.iter().filter(|sent| sent.sacked) {
                match runs.last_mut().filter(|run| run.1 == sent.seq.0) {
                    Some(run) => run.1 = sent.end().0,
                    None => runs.push((sent.seq.0, sent.end().0)),
                }
            }
            let known: Vec<_> = board.runs.iter().map(|run| (run.start.0, run.end.0)).collect();
            prop_assert_eq!(known, runs);
        }
    }
}
