//! Links: serialization, delay, counters.

use firstflight_path::{
    BucketSpec, GilbertElliottSpec, GsoSpec, Link, LinkOutcome, LinkSpec, LossModel, Meter, Nanos, OfferedPacket, Rate,
    queue::{DropTailSpec, Limit, QueueSpec},
};

const MILLISECOND: Nanos = 1_000_000;

fn drop_tail(limit_packets: u32, counts_packet_in_service: bool) -> QueueSpec {
    QueueSpec::DropTail(DropTailSpec { limit: Limit::Packets(limit_packets), counts_packet_in_service })
}

fn plain(bytes: u32) -> OfferedPacket {
    OfferedPacket { bytes, ecn_capable: false, carries_data: true, ends_train: false, connection: 0, class: 0 }
}

fn link(spec: &LinkSpec) -> Link {
    Link::new(spec, Meter::new(10_000 * MILLISECOND, 1_000 * MILLISECOND), 0).unwrap()
}

fn t1(queue: QueueSpec) -> LinkSpec {
    LinkSpec::plain(Some(1_500_000), 50 * MILLISECOND, queue)
}

#[test]
fn a_packet_arrives_after_its_serialization_and_the_delay() {
    let mut link = link(&t1(drop_tail(25, false)));
    assert_eq!(link.offer(7, plain(1500), || 0.5, || 0.5), LinkOutcome::Arrives(7 + 58 * MILLISECOND));
}

#[test]
fn packets_that_find_the_link_busy_wait_for_it_in_order() {
    let mut link = link(&t1(drop_tail(25, false)));
    for packet in 1..=3 {
        assert_eq!(link.offer(0, plain(1500), || 0.5, || 0.5), LinkOutcome::Arrives((packet * 8 + 50) * MILLISECOND));
    }
    assert_eq!(link.waiting_packets(0), 2);
    assert_eq!(link.waiting_packets(8 * MILLISECOND), 1);
    assert_eq!(link.waiting_packets(16 * MILLISECOND), 0);
}

/// ns-2's "25" holds 24 packets that wait and one in service; ns-3's and Linux's holds 25 that wait.
#[test]
fn a_limit_of_25_packets_holds_25_or_26_by_whether_the_packet_in_service_counts() {
    for (counts_packet_in_service, held) in [(true, 25), (false, 26)] {
        let mut link = link(&t1(drop_tail(25, counts_packet_in_service)));
        let accepted = (0..40).filter(|_| link.offer(0, plain(1040), || 0.5, || 0.5) != LinkOutcome::Dropped).count();
        assert_eq!(accepted, held);
    }
}

#[test]
fn a_limit_in_bytes_counts_the_bytes_that_wait() {
    let spec = DropTailSpec { limit: Limit::Bytes(3000), counts_packet_in_service: false };
    let mut link = link(&t1(QueueSpec::DropTail(spec)));
    let accepted: Vec<bool> = [1500, 1500, 1000, 1000, 500]
        .iter()
        .map(|&bytes| link.offer(0, plain(bytes), || 0.5, || 0.5) != LinkOutcome::Dropped)
        .collect();
    assert_eq!(accepted, [true, true, true, false, true]);
}

#[test]
fn room_in_bytes_is_free_once_a_packet_goes_on_the_line_or_has_left_it() {
    // 1000 bytes take 16/3 ms. On the line: 1000 bytes, then 1500.
    for (counts_packet_in_service, offers) in [
        (
            false,
            [(0, 1000, true), (0, 1500, true), (0, 1501, false), (0, 1500, true), (6, 1501, false), (6, 1500, true)],
        ),
        (true, [(0, 1000, true), (0, 1500, true), (0, 501, false), (0, 500, true), (6, 1001, false), (6, 1000, true)]),
    ] {
        let spec = DropTailSpec { limit: Limit::Bytes(3000), counts_packet_in_service };
        let mut link = link(&t1(QueueSpec::DropTail(spec)));
        for (ms, bytes, fits) in offers {
            let outcome = link.offer(ms * MILLISECOND, plain(bytes), || 0.5, || 0.5);
            assert_eq!(outcome != LinkOutcome::Dropped, fits, "{bytes} bytes after {ms} ms");
        }
    }
}

#[test]
fn an_infinitely_fast_link_never_queues() {
    let mut link = link(&LinkSpec { rate_bps: None, ..t1(drop_tail(1, true)) });
    for _ in 0..100 {
        assert_eq!(link.offer(5, plain(1500), || 0.5, || 0.5), LinkOutcome::Arrives(5 + 50 * MILLISECOND));
    }
}

#[test]
fn a_packet_lost_at_random_still_takes_its_time_on_the_line() {
    let mut link = link(&LinkSpec { loss: 0.1, ..t1(drop_tail(25, false)) });
    assert_eq!(link.offer(0, plain(1500), || 0.05, || 0.05), LinkOutcome::Lost);
    assert_eq!(link.offer(0, plain(1500), || 0.5, || 0.5), LinkOutcome::Arrives(66 * MILLISECOND));
}

#[test]
fn a_listed_data_packet_is_lost_whatever_bare_acknowledgments_pass_between() {
    let mut link = link(&LinkSpec { lose: vec![2], ..t1(drop_tail(25, false)) });
    let acknowledgement = OfferedPacket {
        bytes: 40,
        ecn_capable: false,
        carries_data: false,
        ends_train: false,
        connection: 0,
        class: 0,
    };
    let mut lost = |packet| link.offer(0, packet, || 0.5, || 0.5) == LinkOutcome::Lost;
    assert_eq!([acknowledgement, plain(1500), acknowledgement].map(&mut lost), [false; 3]);
    assert_eq!([plain(1500), plain(1500), acknowledgement].map(&mut lost), [true, false, false]);
}

#[test]
fn what_the_queue_drops_is_not_counted_among_the_data_packets() {
    let mut link = link(&LinkSpec { lose: vec![3], ..t1(drop_tail(1, false)) });
    let outcomes: Vec<LinkOutcome> = (0..3).map(|_| link.offer(0, plain(1500), || 0.5, || 0.5)).collect();
    assert_eq!(outcomes[2], LinkOutcome::Dropped);
    assert_eq!(link.offer(16 * MILLISECOND, plain(1500), || 0.5, || 0.5), LinkOutcome::Lost);
}

#[test]
fn a_listed_loss_leaves_the_random_draws_to_the_same_packets() {
    let outcomes = |lose: Vec<u32>| -> Vec<LinkOutcome> {
        let mut link = link(&LinkSpec { loss: 0.5, lose, ..t1(drop_tail(25, false)) });
        let mut draws = [0.9, 0.9, 0.1, 0.9].into_iter();
        (0..4)
            .map(|_| {
                link.offer(
                    0,
                    plain(1500),
                    || unreachable!("drop tail leaves nothing to chance"),
                    || draws.next().unwrap(),
                )
            })
            .collect()
    };
    let (plain, listed) = (outcomes(vec![]), outcomes(vec![1]));
    assert_eq!((listed[0], &listed[1..]), (LinkOutcome::Lost, &plain[1..]));
}

#[test]
fn a_packet_that_is_lost_for_two_reasons_is_lost() {
    let always_bad = GilbertElliottSpec { to_bad: 1.0, to_good: 0.1, loss_in_bad: 1.0, loss_in_good: 0.0 };
    for (loss, loss_model) in [(0.5, None), (0.0, Some(LossModel::GilbertElliott(always_bad)))] {
        let mut link = link(&LinkSpec { loss, loss_model, lose: vec![1], ..t1(drop_tail(25, false)) });
        assert_eq!(link.offer(0, plain(1500), || 0.5, || 0.1), LinkOutcome::Lost);
    }
}

#[test]
fn the_meter_splits_busy_and_waiting_time_at_the_borders_of_its_intervals() {
    let spec = LinkSpec { rate_bps: Some(12_000), ..t1(drop_tail(25, false)) };
    let mut link = link(&spec);
    // Each packet takes one second; the second waits from 0.5 s to 1.5 s.
    link.offer(500 * MILLISECOND, plain(1500), || 0.5, || 0.5);
    link.offer(500 * MILLISECOND, plain(1500), || 0.5, || 0.5);
    let rows: Vec<_> = link.meter().intervals().map(|(_, _, counts)| *counts).collect();
    assert_eq!(rows.len(), 10);
    let busy: Vec<Nanos> = rows.iter().take(4).map(|row| row.busy / MILLISECOND).collect();
    assert_eq!(busy, [500, 1000, 500, 0]);
    let waiting: Vec<u128> = rows.iter().take(3).map(|row| row.waiting / u128::from(MILLISECOND)).collect();
    assert_eq!(waiting, [500, 500, 0]);
    assert_eq!(rows.iter().map(|row| row.sent_packets).collect::<Vec<_>>()[..4], [0, 1, 1, 0]);
    assert_eq!(rows[0].offered_packets, 2);
    assert_eq!(rows[0].queue_max_packets, 1);
}

#[test]
fn what_leaves_after_the_end_of_the_run_is_not_counted_as_sent() {
    let mut link = Link::new(&t1(drop_tail(25, false)), Meter::new(10 * MILLISECOND, 10 * MILLISECOND), 0).unwrap();
    link.offer(0, plain(1500), || 0.5, || 0.5);
    link.offer(0, plain(1500), || 0.5, || 0.5);
    let (_, _, counts) = link.meter().intervals().next().unwrap();
    assert_eq!((counts.sent_packets, counts.busy), (1, 10 * MILLISECOND));
}

#[test]
fn serialization_is_exact_to_half_a_nanosecond() {
    for (rate, bytes, nanos) in
        [(1_500_000u64, 40u32, 213_333u64), (3, 1, 2_666_666_667), (1_000_000_000, 1500, 12_000)]
    {
        assert_eq!(Rate::from_bits_per_second(rate).unwrap().serialization(bytes), nanos);
    }
    assert!(Rate::from_bits_per_second(0).is_err());
}

#[test]
fn impossible_links_are_refused() {
    let refused = |spec: LinkSpec| Link::new(&spec, Meter::new(1, 1), 0).unwrap_err();
    assert!(refused(t1(drop_tail(0, false))).right.contains("queue of zero"));
    assert_eq!(refused(LinkSpec { loss: 1.5, ..t1(drop_tail(1, false)) }).field, "loss");
}

/// 256 kbit/s: 32 bytes a millisecond.
fn shaped(bytes: u32, max_segs: u32) -> Link {
    let (burst, gso) = (Some(BucketSpec { bytes }), Some(GsoSpec { max_segs: Some(max_segs) }));
    let spec = LinkSpec { rate_bps: Some(256_000), delay_ns: 0, burst, gso, ..t1(drop_tail(1000, false)) };
    link(&spec)
}

fn arrivals(link: &mut Link, now: Nanos, packets: impl IntoIterator<Item = OfferedPacket>) -> Vec<Nanos> {
    let offer = |packet| match link.offer(now, packet, || 0.5, || 0.5) {
        LinkOutcome::Arrives(time) => time,
        gone => panic!("{gone:?}"),
    };
    packets.into_iter().map(offer).collect()
}

#[test]
fn a_full_bucket_lets_packets_pass_until_its_tokens_are_negative_and_then_at_the_rate() {
    // 3200 bytes of tokens: after 1600 two packets' worth is left, after 3200 none, after 4800 a deficit of 50 ms.
    let found = arrivals(&mut shaped(3200, 1), 7, [plain(1600); 6]);
    assert_eq!(found, [7, 7, 7, 7 + 50 * MILLISECOND, 7 + 100 * MILLISECOND, 7 + 150 * MILLISECOND]);
}

#[test]
fn silence_fills_a_bucket_up_to_its_size_and_no_further() {
    let mut link = shaped(1600, 1);
    // Two packets leave a deficit of 1600 bytes, which is made good after 50 ms; it is full after 100.
    assert_eq!(arrivals(&mut link, 0, [plain(1600); 2]), [0, 0]);
    assert_eq!(arrivals(&mut link, 75 * MILLISECOND, [plain(1600); 2]), [75 * MILLISECOND, 100 * MILLISECOND]);
    let late = 10_000 * MILLISECOND;
    assert_eq!(arrivals(&mut link, late, [plain(1600); 3]), [late, late, late + 50 * MILLISECOND]);
}

/// Seven segments of 1448 bytes over Linux's htb (`rate 256kbit burst 15k`, whose `cburst` is 1600 bytes), measured: the
/// GSO packet of five comes at 0.3 ms, the one of two at 188.9. Before them the acknowledgment of the request passes.
#[test]
fn gso_packets_pass_whole_and_are_charged_whole_as_by_htb() {
    let mut link = shaped(1600, 5);
    let acknowledgement = OfferedPacket { carries_data: false, ..plain(66) };
    assert_eq!(arrivals(&mut link, 0, [acknowledgement]), [0]);
    // 5 × 1514 − (1600 − 66) bytes at 32 a millisecond.
    let second = 188_625_000;
    let found = arrivals(&mut link, 0, [plain(1514); 7]);
    assert_eq!(found, [0, 0, 0, 0, 0, second, second]);
    assert_eq!(link.waiting_packets(second - 1), 1, "the one of two takes one place");
    assert_eq!(link.waiting_packets(second), 0);
}

#[test]
fn only_data_of_one_connection_that_arrives_together_passes_as_one() {
    let other = OfferedPacket { connection: 1, ..plain(1600) };
    let bare = OfferedPacket { carries_data: false, ..plain(1600) };
    let deficit = [0, 50 * MILLISECOND];
    assert_eq!(arrivals(&mut shaped(1, 9), 0, [plain(1601), plain(1600)]), [0, 0]);
    for apart in [[plain(1601), other], [plain(1601), bare], [OfferedPacket { bytes: 1601, ..bare }, plain(1600)]] {
        assert_eq!(arrivals(&mut shaped(1, 9), 0, apart), deficit);
    }
    let mut link = shaped(1, 9);
    assert_eq!(arrivals(&mut link, 0, [plain(1601)]), [0]);
    assert_eq!(arrivals(&mut link, 1, [plain(1600)]), [50 * MILLISECOND]);
}

/// A queue of two GSO packets behind a line of 1 Mbit/s.
fn queue_of_gso_packets(max_segs: Option<u32>) -> Link {
    let gso = Some(GsoSpec { max_segs });
    link(&LinkSpec { rate_bps: Some(1_000_000), delay_ns: 0, gso, ..t1(drop_tail(2, false)) })
}

#[test]
fn a_train_takes_one_place_in_the_queue_and_is_dropped_as_one() {
    let mut link = queue_of_gso_packets(None);
    let train = [plain(1000), plain(1000), OfferedPacket { ends_train: true, ..plain(1000) }];
    // One is being sent, two wait; each segment takes 8 ms.
    for number in 0..3 {
        let sent = [1, 2, 3].map(|segment| (3 * number + segment) * 8 * MILLISECOND);
        assert_eq!(arrivals(&mut link, 0, train), sent);
    }
    assert_eq!(link.waiting_packets(0), 2);
    assert_eq!(train.map(|packet| link.offer(0, packet, || 0.5, || 0.5)), [LinkOutcome::Dropped; 3]);
    assert_eq!(link.waiting_packets(24 * MILLISECOND), 1, "the second one has begun");
}

#[test]
fn segments_of_two_trains_that_arrive_together_are_two_packets_unless_a_number_joins_them() {
    let ends = OfferedPacket { ends_train: true, ..plain(1000) };
    let waiting = |max_segs| {
        let mut link = queue_of_gso_packets(max_segs);
        arrivals(&mut link, 0, [plain(1000), ends, plain(1000), ends]);
        link.waiting_packets(0)
    };
    assert_eq!((waiting(None), waiting(Some(4)), waiting(Some(3))), (1, 0, 1));
}

#[test]
fn gso_packets_need_a_queue_that_counts_packets_on_arrival() {
    let bytes = QueueSpec::DropTail(DropTailSpec { limit: Limit::Bytes(9), counts_packet_in_service: false });
    let refused = |queue, max_segs| {
        let gso = Some(GsoSpec { max_segs });
        Link::new(&LinkSpec { gso, ..t1(queue) }, Meter::new(0, 1), 0).unwrap_err().to_string()
    };
    assert!(refused(bytes, None).contains("limit in packets"));
    assert!(refused(drop_tail(1, false), Some(0)).contains("max_segs is 0"));
}

#[test]
fn a_bucket_that_is_never_full_carries_no_more_than_the_rate() {
    let mut link = shaped(15_000, 1);
    let last = *arrivals(&mut link, 0, [plain(1500); 500]).last().unwrap();
    // The packet that makes the tokens negative is the eleventh past the bucket's ten.
    assert_eq!(last, Rate::from_bits_per_second(256_000).unwrap().serialization(1500 * (499 - 10)));
}

#[test]
fn a_restarted_link_has_a_full_bucket() {
    let spec = LinkSpec {
        rate_bps: Some(256_000),
        delay_ns: 0,
        burst: Some(BucketSpec { bytes: 1600 }),
        ..t1(drop_tail(1000, false))
    };
    let mut link = link(&spec);
    let first = arrivals(&mut link, 0, [plain(1600); 5]);
    link.restart(&spec, || 0).unwrap();
    assert_eq!(arrivals(&mut link, 0, [plain(1600); 5]), first);
}

#[test]
fn a_bucket_without_a_rate_or_a_size_is_refused() {
    let with = |rate_bps, bytes| {
        let burst = Some(BucketSpec { bytes });
        Link::new(&LinkSpec { rate_bps, burst, ..t1(drop_tail(1, false)) }, Meter::new(0, 1), 0)
            .unwrap_err()
            .to_string()
    };
    assert!(with(None, 1600).contains("set a rate"));
    assert!(with(Some(1000), 0).contains("bytes is 0"));
}
