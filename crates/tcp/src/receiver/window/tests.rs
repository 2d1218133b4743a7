//! The growing window, value by value as Linux's arithmetic gives it.

use super::*;

const MS: Nanos = 1_000_000;
const MSS: u32 = 1460;

/// A buffer for 65,536 bytes that may grow to 3 MiB.
fn window(announced: u32) -> GrowingWindow {
    of_buffer(65_536, announced, 3 << 20)
}

fn of_buffer(initial_bytes: u32, announced: u32, most_bytes: u32) -> GrowingWindow {
    GrowingWindow::new(&ReceiveWindowGrowth { initial_bytes }, MSS, announced, most_bytes, 0, Blocks::default())
}

fn segment(number: u64, payload_bytes: u32) -> Arrived {
    let block = Block::of(number * u64::from(MSS), payload_bytes, 0);
    Arrived { block, payload_bytes, is_longer: false, segment_bytes: MSS, window_bytes: 1 << 20 }
}

/// So many full segments arrive in order.
fn fill(window: &mut GrowingWindow, segments: u64) {
    for number in 0..segments {
        window.on_data(&segment(number, MSS));
    }
}

/// [rcv_ssthresh], as far as the buffer is free.
fn limit(window: &GrowingWindow) -> u64 {
    window.select(1, 0, 0).bytes
}

// Linux, tcp_select_initial_window.
#[test]
fn the_first_window_is_whole_segments() {
    for (initial_bytes, announced) in
        [(65_536, 64_240), (1461, 1460), (1460, 1460), (1459, 1459), (2919, 1460), (1 << 20, 718 * 1460)]
    {
        assert_eq!(GrowingWindow::announced_at_first(&ReceiveWindowGrowth { initial_bytes }, MSS), announced);
    }
}

// Linux, tcp_init_buffer_space: one segment is kept back of more than two.
#[test]
fn the_window_is_clamped_to_the_buffer_less_a_segment() {
    for (initial_bytes, clamp) in
        [(65_536, 64_076), (4381, 2921), (4379, 2920), (2921, 2920), (2920, 2920), (2919, 2919), (100, 100)]
    {
        let window = of_buffer(initial_bytes, 65_535, 1 << 20);
        assert_eq!((window.clamp(), limit(&window)), (clamp, clamp.into()), "{initial_bytes}");
    }
    assert_eq!(limit(&window(10_000)), 10_000);
}

// Linux, __tcp_select_window without a shift: whole segments, and only if the window moves by one.
#[test]
fn without_a_shift_the_window_moves_by_whole_segments() {
    let window = window(65_535);
    for (in_force, bytes) in
        [(0, 62_780), (62_616, 62_780), (62_617, 62_617), (64_076, 64_076), (64_077, 62_780), (70_000, 62_780)]
    {
        let selected = window.select(MSS, in_force, 0);
        assert_eq!((selected.bytes, selected.is_tight), (bytes, false), "{in_force}");
    }
    // A buffer smaller than a segment: the window moves by more than half of it.
    let small = of_buffer(2000, 65_535, 1 << 20);
    for (in_force, bytes) in [(0, 2000), (1, 2000), (999, 2000), (1000, 1000), (2000, 2000), (2001, 2000)] {
        assert_eq!(small.select(5000, in_force, 0).bytes, bytes, "{in_force}");
    }
    assert_eq!(window.select(0, 1000, 0).bytes, 0, "no segment size is known");
    // The same buffer may announce another window once the one in force has become smaller.
    let mut in_use = small;
    in_use.on_data(&segment(0, 100));
    for (in_force, bytes) in [(1600, 0), (400, 1584)] {
        assert_eq!(in_use.select(5000, in_force, 0).bytes, bytes, "{in_force}");
    }
}

#[test]
fn with_a_shift_the_window_is_rounded_up_and_down_once_less_than_half_is_free() {
    assert_eq!(window(65_535).select(MSS, 0, 7).bytes, 64_128, "64,076 in units of 128");
    // Each segment takes 1152 bytes of the 65,536; half of 64,076 is 32,038.
    for (segments, segment_bytes, bytes, is_tight) in [
        (29, MSS, 32_128, false),
        (30, MSS, 30_976, true),
        // A sixteenth of the buffer is 4096.
        (53, MSS, 4480, true),
        (54, MSS, 0, true),
        (53, 4480, 4480, true),
        (53, 4481, 0, true),
    ] {
        let mut window = window(65_535);
        fill(&mut window, segments);
        let selected = window.select(segment_bytes, 0, 7);
        assert_eq!((selected.bytes, selected.is_tight), (bytes, is_tight), "{segments} of {segment_bytes}");
    }
    // Of 30,976 bytes, 30,720 are whole units of 1024: 30,976 is cut off first and not rounded up then.
    let mut window = window(65_535);
    fill(&mut window, 30);
    assert_eq!(window.select(MSS, 0, 10).bytes, 30_720);
}

// Linux, tcp_grow_window: two segments of our MSS for each of 128 bytes or more, as far as there is room.
#[test]
fn a_segment_in_order_opens_the_window_by_two() {
    for (payload_bytes, opens) in [(1460, true), (127, false)] {
        let mut window = window(10_000);
        assert_eq!(window.on_data(&segment(0, payload_bytes)), opens);
        assert_eq!(limit(&window), if opens { 12_920 } else { 10_000 });
    }
    // 128 bytes take 832 of memory, whose share is 416: they open it by two of the peer's segments.
    let mut wasting = window(10_000);
    assert!(wasting.on_data(&Arrived { segment_bytes: 1000, ..segment(0, 128) }));
    assert_eq!(limit(&wasting), 12_000);
    // 1152 bytes take 2304, whose share is as much: nothing is wasted.
    let mut exact = window(10_000);
    assert!(exact.on_data(&Arrived { segment_bytes: 1000, ..segment(0, 1152) }));
    assert_eq!(limit(&exact), 12_920);
    // Twice the payload, if that is more.
    let mut large = window(10_000);
    large.on_data(&segment(0, 4000));
    assert_eq!(limit(&large), 18_000);
    // The last step is as long as the room: 64,076.
    let mut last = window(64_000);
    assert!(last.on_data(&segment(0, MSS)));
    assert_eq!(limit(&last), 64_076);
    assert!(!last.on_data(&segment(1, MSS)));
}

// Linux, __tcp_grow_window: for each halving of a segment's overhead the window must be half as far from its largest.
#[test]
fn segments_that_waste_memory_open_only_a_small_window() {
    // 300 bytes take 1280 of memory, whose share is 640: two halvings, so a quarter of 20,000.
    for (limit_bytes, opens) in [(5000, true), (5001, false), (10_000, false), (10_001, false)] {
        let mut window = of_buffer(65_536, limit_bytes, 20_000);
        assert_eq!(window.on_data(&segment(0, 300)), opens, "{limit_bytes}");
    }
}

// Linux, tcp_measure_rcv_mss: 1460 of 2304 bytes are 162/256, of 131,072 bytes 82,944.
#[test]
fn a_longer_segment_than_before_tells_the_share_of_payload() {
    let longer = |payload_bytes| Arrived { is_longer: true, window_bytes: 65_535, ..segment(0, payload_bytes) };
    let mut window = window(64_240);
    window.on_data(&longer(MSS));
    assert_eq!(window.clamp(), 82_944);
    // The announced window, 65,535, and two segments.
    assert_eq!(limit(&window), 68_455);
    // 300 of 1280 bytes are 60/256.
    let mut window = of_buffer(65_536, 64_240, 3 << 20);
    window.on_data(&longer(300));
    assert_eq!((window.clamp(), limit(&window)), (30_720, 30_420), "of which the segment takes 300");
}

/// A segment comes for which no memory is set aside.
fn has_no_room(window: &mut GrowingWindow) -> bool {
    window.make_room(&Block::of(0, MSS, 0), false)
}

// Linux, tcp_rcv_established: header prediction looks at the memory that is set aside, by the page, and at nothing else.
#[test]
fn the_buffer_is_looked_at_only_where_a_page_begins() {
    let mut growing = window(65_535);
    let mut asked = Vec::new();
    // Blocks of 1280 bytes; 103 of them are more than 131,072 bytes.
    for number in 0..110 {
        let block = Block::of(number * 536, 536, 0);
        let before = growing.memory;
        growing.make_room(&block, true);
        growing.on_data(&Arrived { block, ..segment(0, 536) });
        if growing.memory > before {
            asked.push((number, growing.memory));
        }
    }
    assert_eq!(asked, [(105, 105 * 1280), (108, 108 * 1280)]);
    // Ahead of a hole each is looked at.
    assert!(growing.make_room(&Block::of(0, 536, 0), false));
}

// Linux, tcp_clamp_window.
#[test]
fn a_buffer_over_its_limit_grows_to_what_it_holds_and_no_further_than_the_largest() {
    let mut growing = window(65_535);
    fill(&mut growing, 56);
    assert!(!has_no_room(&mut growing), "56 blocks are 129,024 bytes of 131,072");
    fill(&mut growing, 1);
    assert!(has_no_room(&mut growing));
    assert!(!has_no_room(&mut growing), "the buffer has grown");
    assert_eq!(limit(&growing), 0);
    // The largest is the current one: the window becomes two segments.
    let mut full = of_buffer(65_536, 65_535, 65_536);
    fill(&mut full, 57);
    assert!(has_no_room(&mut full) && has_no_room(&mut full));
    full.on_read(0, 57 * u64::from(MSS), 57 * u64::from(MSS), 0, None);
    assert_eq!(limit(&full), 2 * u64::from(MSS));
}

const RTT: Option<Nanos> = Some(10 * MS);

/// 20 segments, 29,200 bytes, of which 19 are read before an RTT of 10 ms has passed since 100 ms.
fn nineteen_read() -> GrowingWindow {
    let mut window = window(65_535);
    window.begin(100 * MS);
    fill(&mut window, 20);
    window.touch(105 * MS);
    window.on_read(0, 19 * 1460, 29_200, 0, RTT);
    assert_eq!(window.clamp(), 64_076);
    window
}

// Linux, tcp_rcv_space_adjust and tcp_rcvbuf_grow: 2 * 29,200 + 2 * (58,400 * (29,200 - 14,600) / 14,600) = 175,200.
#[test]
fn the_buffer_grows_with_what_is_read_in_an_rtt() {
    for (touched, received, ahead, clamp) in [
        (110 * MS - 1000, 29_200, 0, 64_076),
        (110 * MS, 29_200, 0, 175_200),
        (110 * MS, 29_200, 800, 176_000),
        // Data that waits to be read does not count: 29,200 - 7300 = 21,900; 43,800 + 2 * 21,900.
        (110 * MS, 36_500, 0, 87_600),
        // No more than the 14,600 bytes of the round before.
        (110 * MS, 43_800, 50_000, 64_076),
    ] {
        let mut window = nineteen_read();
        window.touch(touched);
        window.on_read(19 * 1460, 29_200, received, ahead, RTT);
        assert_eq!(window.clamp(), clamp, "{touched} {received} {ahead}");
    }
}

#[test]
fn a_round_ends_with_the_first_block_read_after_an_rtt_and_the_next_begins_there() {
    let mut window = nineteen_read();
    window.touch(110 * MS);
    window.on_read(19 * 1460, 29_200, 29_200, 0, RTT);
    assert_eq!(window.clamp(), 175_200);
    // The next round begins at 29,200 and at 110 ms, and lasts an RTT again.
    for number in 20..60 {
        window.on_data(&segment(number, MSS));
    }
    window.touch(119 * MS);
    window.on_read(29_200, 59 * 1460, 60 * 1460, 0, RTT);
    assert_eq!(window.clamp(), 175_200);
    window.touch(120 * MS);
    window.on_read(59 * 1460, 60 * 1460, 60 * 1460, 0, RTT);
    // 2 * 58,400 + 2 * (116,800 * 29,200 / 29,200).
    assert_eq!(window.clamp(), 350_400);
}

// Linux, tcp_data_queue_ofo, which lets the buffer grow by the data ahead of a hole.
#[test]
fn what_arrives_ahead_of_a_hole_opens_the_window_with_sack_alone_and_counts_for_the_buffer() {
    for has_sack in [false, true] {
        let mut window = window(10_000);
        assert_eq!(window.on_gap(&segment(2, MSS), 45_536, has_sack), has_sack);
        assert_eq!((window.clamp(), limit(&window)), (64_076, if has_sack { 12_920 } else { 10_000 }));
        // Data that is held already does not open it.
        assert!(!window.on_gap(&segment(2, MSS), 45_536, has_sack));
        // 2 * 10,000 + 49,200 is more than 65,536.
        window.on_gap(&segment(3, MSS), 49_200, has_sack);
        assert_eq!(window.clamp(), 69_200);
        window.on_filled(0, 4 * 1460);
        window.on_read(2 * 1460, 4 * 1460, 4 * 1460, 0, None);
        assert_eq!(window.blocks.memory(), 0);
    }
}

#[test]
fn the_shift_makes_twice_the_window_expressible() {
    for (largest, expected) in
        [(1, 0), (32_767, 0), (32_768, 1), (65_535, 1), (3 << 20, 7), (1 << 28, 14), (u32::MAX, 14)]
    {
        assert_eq!(shift(largest), expected, "{largest}");
    }
}
