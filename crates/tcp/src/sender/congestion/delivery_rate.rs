//! The rate at which the network delivers, sampled by every acknowledgment (draft-cheng-iccrg-delivery-rate-estimation,
//! as in Linux).
//!
//! A sample is the data delivered between the sending of a segment and its acknowledgment, over the longer of two
//! times: that in which the data was sent, and that in which it was acknowledged.

use crate::Nanos;
use crate::sequence::SeqNum;
use std::collections::VecDeque;

/// The data stored when a segment is sent.
#[derive(Clone, Copy, Debug, Default)]
struct Departure {
    sent_at: Nanos,
    /// C.first_sent_time: when the segment delivered last before this one left had left.
    first_sent_at: Nanos,
    /// C.delivered_time: when something was delivered last before this one left.
    delivered_at: Nanos,
    /// Segments delivered by then.
    delivered: u32,
    app_limited: bool,
    /// It counted in a sample already.
    counted: bool,
}

/// Rate estimation of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeliveryRate {
    /// Departures of the segments in flight, in the order and with the numbers of the scoreboard.
    departures: VecDeque<Departure>,
    first: u64,
    first_sent_at: Nanos,
    delivered_at: Nanos,
    /// C.app_limited: while fewer segments than this are delivered, samples are limited by the application.
    app_limited_until: Option<u32>,
    pending: Option<Pending>,
}

/// The sample that the current acknowledgment will give.
#[derive(Clone, Copy, Debug)]
struct Pending {
    delivered: u32,
    delivered_at: Nanos,
    sent_at: Nanos,
    end: SeqNum,
    send_interval: Nanos,
    app_limited: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RateSample {
    /// Segments delivered by the time the segment acknowledged last had left.
    pub prior_delivered: u32,
    /// Length of the sample; 0: it says nothing of the rate.
    pub interval: Nanos,
    pub app_limited: bool,
}

impl DeliveryRate {
    fn departure(&self, now: Nanos, delivered: u32) -> Departure {
        Departure {
            sent_at: now,
            first_sent_at: self.first_sent_at,
            delivered_at: self.delivered_at,
            delivered,
            app_limited: self.app_limited_until.is_some(),
            counted: false,
        }
    }

    /// New data leaves; `idle`: nothing was in flight.
    pub fn on_sent(&mut self, now: Nanos, delivered: u32, idle: bool) {
        if idle {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        let departure = self.departure(now, delivered);
        self.departures.push_back(departure);
    }

    /// The segment of this number leaves again.
    pub fn on_retransmitted(&mut self, now: Nanos, number: u64, delivered: u32) {
        let departure = self.departure(now, delivered);
        self.departures[(number - self.first) as usize] = departure;
    }

    /// The segment of this number is two from now on.
    pub fn split(&mut self, number: u64) {
        let index = (number - self.first) as usize;
        self.departures.insert(index + 1, self.departures[index]);
    }

    /// The segment of this number, ending at `end`, was delivered.
    pub fn on_delivered(&mut self, number: u64, end: SeqNum) {
        let departure = &mut self.departures[(number - self.first) as usize];
        if std::mem::replace(&mut departure.counted, true) {
            return;
        }
        let departure = *departure;
        if self.pending.is_some_and(|pending| (departure.sent_at, end) <= (pending.sent_at, pending.end)) {
            return;
        }
        self.first_sent_at = departure.sent_at;
        self.pending = Some(Pending {
            delivered: departure.delivered,
            delivered_at: departure.delivered_at,
            sent_at: departure.sent_at,
            end,
            send_interval: departure.sent_at - departure.first_sent_at,
            app_limited: departure.app_limited,
        });
    }

    /// The first segment in flight is acknowledged cumulatively and leaves the scoreboard.
    pub fn pop(&mut self) {
        self.departures.pop_front();
        self.first += 1;
    }

    /// The application has nothing to send though the window would let it.
    pub fn limit_by_application(&mut self, delivered: u32, in_flight: u32) {
        self.app_limited_until = Some(delivered + in_flight);
    }

    /// Completes the sample of an acknowledgment by which `delivered` segments in all are delivered, `news` of them
    /// newly.
    pub fn sample(&mut self, now: Nanos, delivered: u32, news: u32, min_rtt: Option<Nanos>) -> Option<RateSample> {
        if self.app_limited_until.is_some_and(|until| delivered > until) {
            self.app_limited_until = None;
        }
        if news > 0 {
            self.delivered_at = now;
        }
        let pending = self.pending.take()?;
        let interval = pending.send_interval.max(now - pending.delivered_at);
        // A shorter interval than a round trip comes from aggregated or spurious acknowledgments.
        let interval = if min_rtt.is_none_or(|shortest| interval < shortest) { 0 } else { interval };
        Some(RateSample { prior_delivered: pending.delivered, interval, app_limited: pending.app_limited })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sample of an ACK at `now` for segments by number: segments delivered before, interval, limited.
    fn sample(rate: &mut DeliveryRate, now: Nanos, delivered: u32, numbers: &[u64]) -> Option<(u32, Nanos, bool)> {
        numbers.iter().for_each(|&number| rate.on_delivered(number, number + 1));
        let found = rate.sample(now, delivered, numbers.len() as u32, Some(50))?;
        Some((found.prior_delivered, found.interval, found.app_limited))
    }

    /// Segments 0 to 2 leave at 0, 10 and 20.
    fn three() -> DeliveryRate {
        let mut rate = DeliveryRate::default();
        [0, 10, 20].into_iter().for_each(|now| rate.on_sent(now, 0, now == 0));
        rate
    }

    // Draft, §3.3: interval = max (send_elapsed, ack_elapsed) of the segment that left last.
    #[test]
    fn the_interval_is_the_longer_of_sending_and_acknowledging() {
        let mut rate = three();
        assert_eq!(sample(&mut rate, 100, 1, &[0]), Some((0, 100, false)));
        // It leaves after one was delivered at 100, which had left at 0.
        rate.on_sent(105, 1, false);
        assert_eq!(sample(&mut rate, 130, 3, &[1, 2]), Some((0, 130, false)));
        assert_eq!(sample(&mut rate, 190, 4, &[3]), Some((1, 105, false)));
    }

    #[test]
    fn after_an_idle_time_both_intervals_begin_with_what_is_sent() {
        let mut rate = three();
        sample(&mut rate, 100, 3, &[0, 1, 2]);
        rate.on_sent(1000, 3, true);
        assert_eq!(sample(&mut rate, 1090, 4, &[3]), Some((3, 90, false)));
    }

    #[test]
    fn a_segment_counts_once_and_the_one_that_left_last_counts() {
        let mut rate = three();
        sample(&mut rate, 100, 1, &[0]);
        rate.on_sent(100, 1, false);
        assert_eq!(sample(&mut rate, 200, 3, &[3, 1]), Some((1, 100, false)));
        assert_eq!(sample(&mut rate, 210, 3, &[3, 1]), None);
    }

    #[test]
    fn a_shorter_interval_than_the_shortest_rtt_is_none() {
        for (now, interval) in [(49, 0), (50, 50)] {
            assert_eq!(sample(&mut three(), now, 1, &[0]), Some((0, interval, false)));
        }
        let mut rate = three();
        rate.on_delivered(0, 1);
        assert_eq!(rate.sample(100, 1, 1, None).unwrap().interval, 0);
    }

    #[test]
    fn a_retransmission_replaces_what_was_noted_of_its_segment() {
        let mut rate = three();
        sample(&mut rate, 100, 1, &[0]);
        rate.pop();
        rate.on_retransmitted(150, 2, 1);
        // Delivered at 100 last, by one that had left at 0.
        assert_eq!(sample(&mut rate, 220, 2, &[2]), Some((1, 150, false)));
    }

    #[test]
    fn an_ack_without_news_does_not_move_the_time_of_the_last_delivery() {
        let mut rate = three();
        sample(&mut rate, 100, 1, &[0]);
        assert_eq!(sample(&mut rate, 160, 1, &[]), None);
        rate.on_sent(170, 1, false);
        assert_eq!(sample(&mut rate, 280, 2, &[3]), Some((1, 180, false)));
    }

    // Draft, §3.4: the bubble is over when more is delivered than the data before it.
    #[test]
    fn samples_are_limited_until_all_that_was_in_flight_and_one_more_is_delivered() {
        let mut rate = three();
        rate.limit_by_application(0, 3);
        rate.on_sent(30, 0, false);
        assert_eq!(sample(&mut rate, 120, 3, &[0, 1, 2]), Some((0, 120, false)));
        rate.on_sent(125, 3, false);
        assert_eq!(sample(&mut rate, 130, 4, &[3]), Some((0, 130, true)));
        rate.on_sent(135, 4, false);
        assert_eq!(sample(&mut rate, 230, 5, &[4]), Some((3, 110, true)));
        assert_eq!(sample(&mut rate, 240, 6, &[5]), Some((4, 110, false)));
    }
}
