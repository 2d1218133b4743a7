//! The MUSTs that this crate claims to keep under the `rfc` profile, each with the test that checks it.
//!
//! Only rules that are really tested are here, in our words. Known to be missing: RFC 9293's TIME-WAIT of two segment
//! lifetimes (the crate's documentation says why), urgent data and keep-alives. A few rules that their RFC states without
//! the word stand here too, those of RFC 2883 among them.

use std::path::Path;

/// The source of the rule, the rule, and the test.
struct Must {
    section: &'static str,
    rule: &'static str,
    test: &'static str,
}

const fn must(section: &'static str, rule: &'static str, test: &'static str) -> Must {
    Must { section, rule, test }
}

#[rustfmt::skip]
const CLAIMED: &[Must] = &[
    must("RFC 2018 §2", "no SACK option is sent on a connection whose peer did not send SACK-permitted",
        "sack_is_on_only_if_both_syns_offer_it"),
    must("RFC 2018 §4", "the first block holds the segment that triggered the acknowledgement",
        "each_hole_is_reported_with_the_latest_arrival_first"),
    must("RFC 2018 §4", "the first block is contiguous and as large as what is held",
        "reports_describe_what_is_held_newest_first_and_never_overlap"),
    must("RFC 2018 §4", "every acknowledgement while data is held out of order carries the option",
        "every_acknowledgement_carries_sack_while_a_hole_is_open_and_none_after"),

    must("RFC 2883 §4", "a duplicate is reported in one block only, the first of one acknowledgement",
        "a_segment_received_again_is_reported_once"),
    must("RFC 2883 §4", "a block reports one contiguous sequence that came twice",
        "only_the_part_that_came_twice_is_reported"),
    must("RFC 2883 §4", "a duplicate below the cumulative acknowledgement is reported too",
        "a_duplicate_below_the_acknowledgement_is_reported_once"),

    must("RFC 3168 §6.1.1", "no ECT on a SYN or SYN-ACK; ECE and CWR ask, ECE alone grants",
        "ecn_is_on_if_the_client_asks_and_the_server_does_not_refuse"),
    must("RFC 3168 §6.1.1", "an answer with both bits grants nothing",
        "a_peer_that_reflects_reserved_bits_has_not_agreed"),
    must("RFC 3168 §6.1.3", "after a mark every acknowledgement has ECE until CWR arrives",
        "a_mark_is_echoed_at_once_and_in_every_acknowledgement_until_cwr"),
    must("RFC 3168 §6.1.4", "pure acknowledgments are not ECN-capable",
        "only_new_data_is_capable"),
    must("RFC 3168 §6.1.5", "retransmissions are not ECN-capable",
        "only_new_data_is_capable"),
    must("RFC 3168 §6.1.5", "a mark on a packet outside of the window is ignored",
        "a_mark_on_a_duplicate_is_ignored"),

    must("RFC 3390 §1", "the initial window is one segment if the SYN or SYN-ACK was lost (rule `rfc3390`)",
        "lost_syn_resets_initial_window_to_one_segment"),
    must("RFC 3390 §1", "... and so it is for the end whose SYN-ACK was lost",
        "lost_syn_ack_resets_initial_window_of_both_ends_to_one_segment"),

    must("RFC 5681 §3.1", "neither the SYN-ACK nor its ACK increases cwnd",
        "neither_the_syn_ack_nor_its_ack_increases_the_initial_window"),
    must("RFC 5681 §3.1", "slow start governs what is outstanding while cwnd is below ssthresh",
        "slow_start_doubles_with_an_acknowledgement_per_segment"),
    must("RFC 5681 §3.1", "congestion avoidance governs what is outstanding from ssthresh on",
        "congestion_avoidance_adds_about_one_segment_a_round"),
    must("RFC 5681 §3.1", "in congestion avoidance cwnd grows by no more than one segment a round trip",
        "counting_by_window_adds_exactly_one_segment_a_window"),
    must("RFC 5681 §3.1", "a sender never sends beyond the smaller of cwnd and the receive window: cwnd",
        "the_first_flight_on_the_wire_is_the_initial_window_in_whole_segments"),
    must("RFC 5681 §3.1", "a sender never sends beyond the smaller of cwnd and the receive window: receive window",
        "a_receiver_that_does_not_read_stops_the_sender"),
    must("RFC 5681 §3.1", "a timeout sets ssthresh to no more than max (FlightSize/2, 2 SMSS), once for a segment",
        "a_timeout_sends_one_segment_and_halves_the_flight_into_ssthresh_once"),
    must("RFC 5681 §3.1", "after a timeout cwnd is no more than the loss window of one segment",
        "a_timeout_sends_one_segment_and_halves_the_flight_into_ssthresh_once"),
    must("RFC 5681 §3.2", "the third duplicate ACK retransmits; ssthresh as after a timeout, cwnd = ssthresh + 3 SMSS",
        "reno_repairs_one_loss_with_half_the_window"),
    must("RFC 5681 §3.2", "each further duplicate ACK adds one SMSS to cwnd",
        "reno_repairs_one_loss_with_half_the_window"),
    must("RFC 5681 §3.2", "the ACK that ends recovery sets cwnd to ssthresh",
        "reno_leaves_recovery_with_ssthresh_at_the_first_new_acknowledgement"),
    must("RFC 5681 §4.2", "an ACK leaves within 500 ms of the first unacknowledged segment",
        "every_second_segment_is_acknowledged_and_the_odd_one_after_200_ms"),
    must("RFC 5681 §4.2", "the delayed ACK's time runs from the first segment that waits",
        "the_timer_starts_with_the_first_segment_that_waits"),
    must("RFC 5681 §4.2", "no more than one ACK for an incoming segment, window updates apart",
        "reading_at_once_does_not_upset_the_policy"),

    must("RFC 6298 §2.2", "the first sample sets SRTT = R, RTTVAR = R/2, RTO = SRTT + max (G, 4 RTTVAR)",
        "the_estimator_follows_rfc_6298"),
    must("RFC 6298 §2.3", "later samples update RTTVAR, with the old SRTT, and then SRTT",
        "the_estimator_follows_rfc_6298"),
    must("RFC 6298 §2.3", "a variation of nothing counts as the clock's granularity",
        "steady_samples_leave_the_granularity_above_the_round_trip"),
    must("RFC 6298 §3", "no sample comes from a retransmitted segment (Karn)",
        "karn_takes_no_sample_from_what_was_sent_twice_and_keeps_the_back_off"),
    must("RFC 6298 §3", "... nor across the repair of a hole",
        "no_round_trip_is_measured_across_a_repair"),
    must("RFC 6298 §5", "no segment is retransmitted earlier than one RTO after it left, by the timer",
        "an_acknowledgement_of_new_data_restarts_the_timer"),
    must("RFC 6298 §5.5", "each expiry doubles the RTO",
        "the_timeout_doubles_up_to_its_cap_and_the_connection_is_given_up"),
    must("RFC 6298 §5.7", "the RTO is 3 s as data begins after a SYN that timed out",
        "the_timeout_is_three_seconds_after_a_syn_that_had_to_be_repeated"),

    must("RFC 7323 §2.2", "the window field of a SYN is not scaled",
        "windows_are_scaled_only_if_both_ends_offer_it"),
    must("RFC 7323 §2.2", "windows are scaled only if both SYNs carry the option",
        "windows_are_scaled_only_if_both_ends_offer_it"),
    must("RFC 7323 §2.3", "a shift above 14 counts as 14",
        "a_window_scale_above_14_counts_as_14"),
    must("RFC 7323 §3.2", "timestamps are used only if both SYNs carry them, and then in every segment",
        "timestamps_are_on_only_if_both_syns_carry_them_and_take_12_bytes_of_each_segment"),
    must("RFC 7323 §3.2", "a segment that lacks the option does not abort the connection",
        "a_segment_without_the_option_does_not_abort_the_connection"),
    must("RFC 7323 §4.3", "TSecr is the timestamp of the earliest segment not acknowledged",
        "a_held_back_acknowledgement_echoes_the_first_segment_that_waits"),
    must("RFC 7323 §4.3", "TSecr stays while a hole is open and follows what fills it",
        "ahead_of_a_hole_the_echo_stays_and_its_filling_moves_it"),
    must("RFC 7323 §5.2", "a RST is not judged by its timestamp",
        "a_reset_counts_whatever_its_timestamp"),
    must("RFC 7323 §5.3", "an older timestamp is answered with an acknowledgement and dropped",
        "an_older_timestamp_is_acknowledged_and_dropped"),
    must("RFC 7323 §5.5", "a timestamp to echo that is 24 days old judges nothing",
        "after_24_days_of_silence_any_timestamp_is_good"),

    must("RFC 9293 §3.5", "both ends may open at once",
        "both_ends_may_open_at_once"),
    must("RFC 9293 §3.6", "the application hears whether the connection was closed or aborted",
        "abort_resets_the_peer"),
    must("RFC 9293 §3.7.1", "MSS options are sent and heeded: no segment exceeds what the peer will receive",
        "the_segment_size_is_the_smaller_of_both_ends"),
    must("RFC 9293 §3.7.1", "without an MSS option segments hold 536 bytes",
        "a_peer_without_mss_option_gets_536_byte_segments"),
    must("RFC 9293 §3.8.3", "a SYN is tried for at least three minutes",
        "the_rfc_profile_tries_a_syn_for_three_minutes_and_data_for_longer_than_100_seconds"),
    must("RFC 9293 §3.8.6.1", "a closed window is probed",
        "a_lost_window_update_is_found_by_the_probe"),
    must("RFC 9293 §3.8.6.1", "a closed window keeps the connection open for as long as probes are answered",
        "a_closed_window_is_probed_at_growing_intervals_for_ever"),
    must("RFC 9293 §3.8.6.2.1", "the sender avoids silly windows",
        "the_sender_sends_no_silly_segments_into_a_small_window"),
    must("RFC 9293 §3.8.6.2.2", "the receiver avoids silly windows",
        "the_window_does_not_open_by_less_than_a_segment"),
    must("RFC 9293 §3.10.7.1", "a closed connection answers strays with a RST, but never a RST",
        "a_closed_endpoint_answers_strays_with_a_reset_but_never_a_reset"),
    must("RFC 9293 §3.10.7.4", "a RST counts only at RCV.NXT; elsewhere in the window it is challenged",
        "a_reset_counts_only_at_the_expected_sequence_number"),
    must("RFC 9293 §3.10.7.4", "a SYN on a synchronised connection is challenged",
        "a_syn_on_a_live_connection_is_challenged"),
    must("RFC 9293 §3.10.7.4", "an ACK of what was never sent is answered, and the segment dropped",
        "an_acknowledgement_of_what_was_never_sent_is_answered_and_dropped"),
];

/// All Rust sources below a directory, one after the other.
fn sources(directory: &Path) -> String {
    let mut entries: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    let text = |path: &Path| match path {
        path if path.is_dir() => sources(path),
        path if path.extension().is_some_and(|extension| extension == "rs") => std::fs::read_to_string(path).unwrap(),
        _ => String::new(),
    };
    entries.iter().map(|path| text(path)).collect()
}

#[test]
fn every_must_that_is_claimed_names_a_test_that_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let all = sources(&root.join("src")) + &sources(&root.join("tests"));
    let unindented: String = all.lines().map(|line| line.trim_start().to_owned() + "\n").collect();
    for Must { section, rule, test } in CLAIMED {
        assert!(unindented.contains(&format!("#[test]\nfn {test}(")), "{section}: {rule}: there is no test {test}");
    }
}

#[test]
fn every_must_that_is_claimed_has_a_section_and_stands_in_order() {
    let number = |section: &str| -> Vec<u32> {
        let digits = |part: &str| part.parse().unwrap_or_else(|_| panic!("{section} is not like RFC 9293 §3.7.1"));
        let (rfc, place) = section.strip_prefix("RFC ").and_then(|rest| rest.split_once(" §")).unwrap();
        std::iter::once(rfc).chain(place.split('.')).map(digits).collect()
    };
    assert!(CLAIMED.is_sorted_by_key(|must| number(must.section)));
    assert!(CLAIMED.windows(2).all(|pair| pair[0].rule != pair[1].rule));
}
