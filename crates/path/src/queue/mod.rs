//! Queue disciplines. One that decides on arrival lets a packet in or refuses it, and its link knows immediately when
//! the packet leaves. One that decides on departure holds the packets and says which one leaves next, and which never
//! will.

mod codel;
mod departure;
mod drop_tail;
mod fq_codel;
mod pie;
mod priority;
mod red;

pub use departure::{Held, OnDeparture, Packet, Released};

use serde::{Deserialize, Serialize};

use crate::{Nanos, Part, SpecError, backlog::Backlog};

/// The input of a queue's decision when a packet arrives.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Time of arrival.
    pub now: Nanos,
    /// Bytes of the arriving packet, headers included.
    pub bytes: u32,
    /// Its sender reacts to marks as it does to losses: ECT(0), ECT(1) or CE in the IP header (RFC 3168 §5).
    pub ecn_capable: bool,
    /// Packets that wait.
    pub backlog: &'a Backlog,
    /// A packet is in service: the link transmits it.
    pub serving: bool,
    /// When everything accepted so far will be sent; not after `now` if nothing is in service.
    pub free_at: Nanos,
}

impl Arrival<'_> {
    /// Packets held: those that wait and, if `with_service`, the one in service.
    fn packets(&self, with_service: bool) -> u32 {
        self.backlog.packets() + u32::from(with_service && self.serving)
    }

    /// Bytes held, as [`Arrival::packets`] counts packets.
    #[inline]
    fn bytes_held(&self, with_service: bool) -> u64 {
        let in_service = if with_service && self.serving { self.backlog.in_service_bytes() } else { 0 };
        self.backlog.bytes() + u64::from(in_service)
    }
}

/// A queue's decision on an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Lets it in.
    Admit,
    /// Lets it in with "congestion experienced" in its IP header.
    Mark,
    /// Refuses it.
    Drop,
}

/// A limit in packets or in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// So many packets.
    Packets(u32),
    /// So many bytes, headers included.
    Bytes(u64),
}

impl Limit {
    /// Checks that it is not zero.
    pub(super) fn validate(self) -> Result<Limit, SpecError> {
        match self {
            Limit::Packets(0) | Limit::Bytes(0) => {
                Err(SpecError::new("limit", 0, "a queue of zero holds nothing; give at least one packet"))
            }
            limit => Ok(limit),
        }
    }

    /// True if a queue with this content is over the limit.
    pub(super) fn is_exceeded_by(self, packets: u32, bytes: u64) -> bool {
        match self {
            Limit::Packets(limit) => packets > limit,
            Limit::Bytes(limit) => bytes > limit,
        }
    }
}

/// The table of disciplines: one line for each, with its file, its type and how a scenario describes it.
macro_rules! disciplines {
    (
        on arrival { $($(#[$arrival_doc:meta])* $arrival:ident($arrival_spec:ident) in $arrival_file:ident,)* }
        on departure { $($(#[$departure_doc:meta])* $departure:ident($departure_spec:ident) in $departure_file:ident,)* }
    ) => {
        $(pub use $arrival_file::{$arrival, $arrival_spec};)*
        $(pub use $departure_file::{$departure, $departure_spec};)*

        /// A queue discipline as far as it decides on arrival.
        #[derive(Clone, Debug, Default)]
        pub enum Queue {
            $($(#[$arrival_doc])* $arrival($arrival),)*
            /// The discipline decides on departure: everything comes to it.
            #[default]
            OnDeparture,
        }

        impl Queue {
            /// Decides on the arriving packet. `random` gives uniform draws in [0, 1).
            // By value: a reference would need a struct in memory, also for a queue that asks little.
            #[inline]
            pub fn on_arrival(&mut self, arrival: Arrival<'_>, random: &mut impl FnMut() -> f64) -> Verdict {
                match self {
                    $(Queue::$arrival(queue) => queue.on_arrival(arrival, random),)*
                    Queue::OnDeparture => Verdict::Admit,
                }
            }
        }

        /// A queue as a scenario describes it.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        pub enum QueueSpec {
            $($(#[$arrival_doc])* $arrival($arrival_spec),)*
            $($(#[$departure_doc])* $departure($departure_spec),)*
        }

        impl QueueSpec {
            pub(crate) fn parts() -> Vec<Part> {
                vec![
                    $($arrival_spec::describe(stringify!($arrival)),)*
                    $($departure_spec::describe(stringify!($departure)),)*
                ]
            }

            /// Builds the discipline on arrival. `serialization` gives the time to send a packet of this number of
            /// bytes.
            ///
            /// # Errors
            /// An impossible parameter.
            pub fn build(&self, serialization: impl Fn(u32) -> Nanos) -> Result<Queue, SpecError> {
                match self {
                    $(QueueSpec::$arrival(spec) => {
                        spec.check_bounds()?;
                        $arrival::new(spec, &serialization).map(Queue::$arrival)
                    })*
                    $(QueueSpec::$departure(spec) => spec.check_bounds().map(|()| Queue::OnDeparture),)*
                }
            }

            /// Sets its limit to this number of bytes, at least one; RED's limit is in packets and stays.
            pub fn set_limit(&mut self, bytes: u64) {
                let limit = match self {
                    $(QueueSpec::$arrival(spec) => spec.limit(),)*
                    $(QueueSpec::$departure(spec) => spec.limit(),)*
                };
                if let Some(limit) = limit {
                    *limit = Limit::Bytes(bytes.max(1));
                }
            }

            /// True if it decides on departure.
            pub fn decides_on_departure(&self) -> bool {
                match self {
                    $(QueueSpec::$arrival(_) => false,)*
                    $(QueueSpec::$departure(_) => true,)*
                }
            }

            /// Builds the discipline on departure; none if it decides on arrival. `key` keys its hash of flows.
            ///
            /// # Errors
            /// An impossible parameter.
            pub fn build_departure<T: Packet>(
                &self,
                key: u64,
            ) -> Result<Option<Box<dyn OnDeparture<T>>>, SpecError> {
                match self {
                    $(QueueSpec::$arrival(_) => Ok(None),)*
                    $(QueueSpec::$departure(spec) => {
                        spec.check_bounds()?;
                        Ok(Some(Box::new($departure::new(spec, key)?)))
                    })*
                }
            }
        }
    };
}

disciplines! {
    on arrival {
        /// Drop tail.
        DropTail(DropTailSpec) in drop_tail,
        /// Random early detection.
        Red(RedSpec) in red,
        /// Proportional integral controller enhanced.
        Pie(PieSpec) in pie,
    }
    on departure {
        /// Controlled delay.
        Codel(CodelSpec) in codel,
        /// Flow queues with CoDel.
        FqCodel(FqCodelSpec) in fq_codel,
        /// Strict priority by class.
        Priority(PrioritySpec) in priority,
    }
}
