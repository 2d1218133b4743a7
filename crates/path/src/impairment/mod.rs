//! Impairments of a packet between its transmission and the far end: it is delayed or duplicated.

mod duplication;
mod jitter;
mod reordering;
mod wake;

use serde::{Deserialize, Serialize};

use crate::{
    Nanos, Part, SpecError,
    hash::{mix, uniform},
};

/// The table of impairments: one line for each, with its file, its type and how a scenario describes it.
macro_rules! impairments {
    ($($(#[$doc:meta])* $impairment:ident($spec:ident) in $file:ident,)*) => {
        $(pub use $file::$spec;)*

        /// An impairment as a scenario describes it.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        pub enum ImpairmentSpec {
            $($(#[$doc])* $impairment($spec),)*
        }

        impl ImpairmentSpec {
            pub(crate) fn parts() -> Vec<Part> {
                vec![$($spec::describe(stringify!($impairment)),)*]
            }

            fn check(&self) -> Result<(), SpecError> {
                match self {
                    $(ImpairmentSpec::$impairment(spec) => spec.check_bounds(),)*
                }
            }

            /// Whether a packet can overtake another, or come twice.
            pub fn reorders(&self) -> bool {
                match self {
                    $(ImpairmentSpec::$impairment(spec) => spec.reorders(),)*
                }
            }

            /// What it does to a packet; `before`: the one before it.
            fn act(&self, flight: &mut Flight, before: Option<Passage>, draws: Draws) {
                match self {
                    $(ImpairmentSpec::$impairment(spec) => spec.act(flight, before, draws.of(stringify!($impairment))),)*
                }
            }
        }
    };
}

pub use jitter::Distribution;

impairments! {
    /// Each packet has its own delay.
    Jitter(JitterSpec) in jitter,
    /// Some packets take longer.
    Reordering(ReorderingSpec) in reordering,
    /// Some packets come twice.
    Duplication(DuplicationSpec) in duplication,
    /// The far end sleeps while nothing arrives.
    Wake(WakeSpec) in wake,
}

/// When a packet reaches the far end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flight {
    pub(crate) arrival: Nanos,
    /// When a copy of it does.
    pub(crate) copy: Option<Nanos>,
    /// It does so before one that was transmitted earlier.
    pub(crate) overtakes: bool,
}

/// Draws of a packet, none of which depends on another packet or another impairment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draws(u64);

impl Draws {
    /// Those for one impairment.
    fn of(self, name: &str) -> Draws {
        Draws(name.bytes().fold(self.0, |key, byte| mix(key ^ u64::from(byte))))
    }

    /// One of them, uniform in [0, 1).
    fn uniform(self) -> f64 {
        uniform(self.0, 0)
    }
}

/// When a packet came to an impairment, and when it left it.
#[derive(Clone, Copy, Debug)]
struct Passage {
    came: Nanos,
    left: Nanos,
}

#[derive(Clone, Debug)]
pub(crate) struct Impairments {
    /// Each with the last packet's passage.
    all: Vec<(ImpairmentSpec, Option<Passage>)>,
    key: u64,
    /// When the last of the packets so far reaches the far end.
    latest: Nanos,
}

impl Impairments {
    /// Those that `specs` ask for, with draws by `key`.
    pub(crate) fn new(specs: &[ImpairmentSpec], key: u64) -> Result<Impairments, SpecError> {
        specs.iter().try_for_each(ImpairmentSpec::check)?;
        Ok(Impairments { all: specs.iter().map(|spec| (spec.clone(), None)).collect(), key, latest: 0 })
    }

    /// The outcome for a packet that would reach the far end at `arrival`. `own` is its own draw, which also decides
    /// its loss, so nothing here depends on which other packets cross the link.
    pub(crate) fn act(&mut self, arrival: Nanos, own: f64) -> Flight {
        let mut flight = Flight { arrival, copy: None, overtakes: false };
        let draws = Draws(mix(self.key ^ own.to_bits()));
        for (impairment, last) in &mut self.all {
            let came = flight.arrival;
            impairment.act(&mut flight, *last, draws);
            *last = Some(Passage { came, left: flight.arrival });
        }
        flight.overtakes = flight.arrival < self.latest;
        self.latest = self.latest.max(flight.arrival);
        flight
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jitter(keep_order: bool) -> ImpairmentSpec {
        ImpairmentSpec::Jitter(JitterSpec { distribution: Distribution::Uniform, mean_ns: 1000, keep_order })
    }

    const LATE: ImpairmentSpec = ImpairmentSpec::Reordering(ReorderingSpec { share: 0.25, delay_ns: 5000 });
    const TWICE: ImpairmentSpec = ImpairmentSpec::Duplication(DuplicationSpec { share: 0.25, delay_ns: 0 });

    fn flights(specs: &[ImpairmentSpec]) -> Vec<Flight> {
        let mut impairments = Impairments::new(specs, 3).unwrap();
        (0..20_000).map(|number| impairments.act(100 * number, uniform(9, number))).collect()
    }

    fn share(flights: &[Flight], is: impl Fn(&Flight) -> bool) -> f64 {
        flights.iter().filter(|flight| is(flight)).count() as f64 / flights.len() as f64
    }

    #[test]
    fn as_many_packets_are_late_or_come_twice_as_the_share_says() {
        let found = flights(&[LATE, TWICE]);
        assert!((0.24..0.26).contains(&share(&found, |flight| flight.copy.is_some())));
        let late = found.iter().enumerate().filter(|(number, flight)| flight.arrival > 100 * *number as u64).count();
        assert!((4_800..5_200).contains(&late), "{late}");
        assert!(found.iter().all(|flight| flight.copy.is_none_or(|copy| copy == flight.arrival)));
    }

    #[test]
    fn the_share_holds_for_every_key() {
        for key in [0, 1, u64::MAX, u64::MAX << 32] {
            let mut impairments = Impairments::new(&[TWICE], key).unwrap();
            let copies =
                (0..20_000).filter(|&number| impairments.act(number, uniform(9, number)).copy.is_some()).count();
            assert!((4_800..5_200).contains(&copies), "{copies} with key {key:x}");
        }
    }

    #[test]
    fn jitter_has_its_mean_and_keeps_the_order_unless_told_otherwise() {
        let free = flights(&[jitter(false)]);
        let mean = free.iter().enumerate().map(|(number, flight)| (flight.arrival - 100 * number as u64) as f64);
        let mean = mean.sum::<f64>() / 2e4;
        assert!((980.0..1020.0).contains(&mean), "{mean}");
        assert!(share(&free, |flight| flight.overtakes) > 0.5);
        let kept = flights(&[jitter(true)]);
        assert!(kept.is_sorted_by_key(|flight| flight.arrival));
        assert_eq!(share(&kept, |flight| flight.overtakes), 0.0);
    }

    #[test]
    fn one_impairment_more_leaves_the_draws_of_the_others_as_they_were() {
        let copies =
            |specs: &[ImpairmentSpec]| flights(specs).iter().map(|flight| flight.copy.is_some()).collect::<Vec<_>>();
        assert_eq!(copies(&[TWICE]), copies(&[jitter(false), LATE, TWICE]));
        // And another packet's draws never count.
        let mut impairments = Impairments::new(&[LATE, TWICE], 3).unwrap();
        let all = flights(&[LATE, TWICE]);
        for number in (0..20_000).step_by(7) {
            let flight = impairments.act(100 * number, uniform(9, number));
            let of_all = all[number as usize];
            assert_eq!((flight.arrival, flight.copy), (of_all.arrival, of_all.copy));
        }
    }

    #[test]
    fn two_impairments_are_independent_of_each_other_and_of_the_loss() {
        let both = flights(&[LATE, TWICE]);
        let late = |number: usize| both[number].arrival > 100 * number as u64;
        let joint = (0..both.len()).filter(|&number| late(number) && both[number].copy.is_some()).count();
        assert!((1_150..1_350).contains(&joint), "{joint}");
        let of_low = (0..both.len()).filter(|&number| uniform(9, number as u64) < 0.1 && late(number)).count();
        assert!((430..570).contains(&of_low), "{of_low}");
    }

    #[test]
    fn a_packet_is_impaired_if_its_draw_lies_below_the_share() {
        let draw = |name| Draws(mix(3 ^ 0.5f64.to_bits())).of(name).uniform();
        let flight = |spec| Impairments::new(&[spec], 3).unwrap().act(0, 0.5);
        for (above, late) in [(0.0, 0), (1e-9, 5000)] {
            let share = draw("Reordering") + above;
            let spec = ImpairmentSpec::Reordering(ReorderingSpec { share, delay_ns: 5000 });
            assert_eq!(flight(spec).arrival, late);
            let share = draw("Duplication") + above;
            let spec = ImpairmentSpec::Duplication(DuplicationSpec { share, delay_ns: 5000 });
            assert_eq!(flight(spec).copy, (late > 0).then_some(late));
        }
    }

    #[test]
    fn what_is_no_share_is_refused() {
        for spec in [
            ImpairmentSpec::Reordering(ReorderingSpec { share: 1.1, delay_ns: 1 }),
            ImpairmentSpec::Duplication(DuplicationSpec { share: f64::NAN, delay_ns: 1 }),
        ] {
            assert!(Impairments::new(&[spec], 0).is_err());
        }
    }
}
