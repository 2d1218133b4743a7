//! What the fields of a profile can be set to, for those who read and write profiles by name.
//!
//! Nothing is listed twice: the variants and their parameters are what `serde` accepts, found out by asking it.

use super::{
    AckPolicy, EcnPolicy, IdleCheck, InitialWindow, Lesson, MemoryOf, Nagle, RecoveryAlgorithm, RecoveryExit,
    RestartWindow, RtoEstimator, RttSamples, SsthreshBase, SynLossResponse, WindowValidation,
};
use crate::sender::congestion::{CongestionAlgorithm, CongestionAvoidance, Hystart, SlowStartGrowth};
use crate::sender::startup::Startup;
use serde::de::value::{MapAccessDeserializer, MapDeserializer, StrDeserializer};
use serde::de::{DeserializeOwned, Deserializer, Error, IntoDeserializer, Visitor};
use serde::{Serialize, forward_to_deserialize_any};
use std::fmt;

/// Declares the choices: the path of a field, its name here, its type, and how its values are found.
macro_rules! choices {
    ($($path:literal $field:ident: $type:ty = $values:expr,)*) => {
        /// For each field of a [`Profile`](crate::Profile) with a choice, named by its path, every value it can have.
        ///
        /// Parameters of a value are set to their defaults; 0 stands for a number that has none and must be given. Words
        /// among the parameters need a default.
        #[derive(Clone, Debug, Serialize)]
        #[expect(missing_docs, reason = "named and documented as the fields are")]
        pub struct Choices {
            $(#[serde(rename = $path)] pub $field: Vec<$type>,)*
        }

        impl Choices {
            /// All of them.
            pub fn all() -> Self {
                Self { $($field: $values,)* }
            }
        }
    };
}

choices! {
    "initial_window" initial_window: InitialWindow = tables("policy"),
    "initial_window.of" memory_of: MemoryOf = words(),
    "initial_window.lesson" lesson: Lesson = words(),
    "restart_window" restart_window: RestartWindow = tables("policy"),
    "idle_check" idle_check: IdleCheck = words(),
    "syn_loss_response" syn_loss_response: SynLossResponse = words(),
    "ack" ack: AckPolicy = tables("policy"),
    "ecn" ecn: EcnPolicy = words(),
    "nagle" nagle: Nagle = words(),
    "recovery" recovery: RecoveryAlgorithm = kinds(),
    "recovery.reno.exit" recovery_exit: RecoveryExit = words(),
    "congestion_control" congestion_control: CongestionAlgorithm = tables("algorithm"),
    "congestion_control.hystart" hystart: Hystart = words(),
    "window_validation" window_validation: WindowValidation = kinds(),
    "startup" startup: Startup = tables("scheme"),
    "slow_start_growth" slow_start_growth: SlowStartGrowth = words(),
    "congestion_avoidance" congestion_avoidance: CongestionAvoidance = words(),
    "ssthresh.base" ssthresh_base: SsthreshBase = words(),
    "rto.samples" rto_samples: RttSamples = words(),
    "rto.estimator" rto_estimator: RtoEstimator = kinds(),
}

/// The values of a type that is written as a word.
fn words<T: DeserializeOwned>() -> Vec<T> {
    let read = |word| T::deserialize(StrDeserializer::<Complaint>::new(word));
    variants(read("")).iter().filter_map(|word| read(word).ok()).collect()
}

/// The values of a type that is written as a word, or as a table of one entry: the variant and the table of its parameters.
fn kinds<T: DeserializeOwned>() -> Vec<T> {
    let word = |kind| T::deserialize(StrDeserializer::<Complaint>::new(kind));
    let table = |kind: &&'static str| {
        let entry = [(*kind, Given::Table)].into_iter();
        T::deserialize(MapAccessDeserializer::new(MapDeserializer::<_, Complaint>::new(entry)))
    };
    variants(word("")).iter().filter_map(|kind| word(kind).or_else(|_| table(kind)).ok()).collect()
}

/// The values of a type that is written as a table whose `tag` names the variant.
fn tables<T: DeserializeOwned>(tag: &'static str) -> Vec<T> {
    let read = |variant, given: &[&'static str]| {
        let parameters = given.iter().map(|name| (*name, Given::Zero));
        T::deserialize(MapDeserializer::<_, Complaint>::new(
            [(tag, Given::Word(variant))].into_iter().chain(parameters),
        ))
    };
    let complete = |variant: &&'static str| {
        let mut given = Vec::new();
        loop {
            match read(variant, &given) {
                Ok(value) => return Some(value),
                Err(Complaint::Missing(name)) => given.push(name),
                Err(_) => return None,
            }
        }
    };
    variants(read("", &[])).iter().filter_map(complete).collect()
}

/// The variants named in the complaint about one that does not exist.
fn variants<T>(answer: Result<T, Complaint>) -> &'static [&'static str] {
    match answer {
        Err(Complaint::UnknownVariant(known)) => known,
        _ => &[],
    }
}

/// Why something cannot be read.
#[derive(Clone, Debug)]
enum Complaint {
    UnknownVariant(&'static [&'static str]),
    Missing(&'static str),
    Other,
}

impl Error for Complaint {
    fn custom<T: fmt::Display>(_message: T) -> Self {
        Self::Other
    }

    fn unknown_variant(_variant: &str, known: &'static [&'static str]) -> Self {
        Self::UnknownVariant(known)
    }

    fn missing_field(name: &'static str) -> Self {
        Self::Missing(name)
    }
}

impl std::error::Error for Complaint {}

impl fmt::Display for Complaint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self:?}")
    }
}

/// What a table is filled with.
#[derive(Clone, Copy)]
enum Given {
    Word(&'static str),
    Zero,
    /// Without entries: each parameter has its default.
    Table,
}

impl<'de> Deserializer<'de> for Given {
    type Error = Complaint;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Complaint> {
        match self {
            Self::Word(word) => visitor.visit_borrowed_str(word),
            Self::Zero => visitor.visit_u64(0),
            Self::Table => visitor.visit_map(MapDeserializer::new(std::iter::empty::<(&str, Self)>())),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl IntoDeserializer<'_, Complaint> for Given {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize as _;

    #[test]
    fn the_choices_are_every_variant_with_its_parameters() {
        let found = serde_json::to_value(Choices::all()).unwrap();
        assert_eq!(found["recovery"][0], serde_json::json!("tahoe"));
        assert_eq!(found["recovery"][1], serde_json::json!({"reno": {"exit": "ssthresh"}}));
        assert_eq!(found["rto.estimator"], serde_json::json!([{"rfc6298": {"quantized_rtt": false}}, "linux"]));
        assert_eq!(found["initial_window"][0], serde_json::json!({"policy": "fixed", "segments": 0}));
        assert_eq!(found["ack"][1], serde_json::json!({"policy": "delayed", "segments": 0, "timer_ns": 0}));
        assert_eq!(found["startup"][1], serde_json::json!({"scheme": "paced", "over_rtt_percent": 100}));
    }

    /// A variant with a parameter that neither has a default nor is a number would be left out.
    #[test]
    fn no_variant_is_left_out() {
        fn complete<T: DeserializeOwned>(tag: &'static str) {
            let map = MapDeserializer::<_, Complaint>::new([(tag, Given::Word(""))].into_iter());
            assert_eq!(tables::<T>(tag).len(), variants(T::deserialize(map)).len(), "{}", std::any::type_name::<T>());
        }
        complete::<InitialWindow>("policy");
        complete::<RestartWindow>("policy");
        complete::<AckPolicy>("policy");
        complete::<CongestionAlgorithm>("algorithm");
        complete::<Startup>("scheme");
        let read = |word| RecoveryAlgorithm::deserialize(StrDeserializer::<Complaint>::new(word));
        assert_eq!(kinds::<RecoveryAlgorithm>().len(), variants(read("")).len());
    }
}
