//! Packet scripts: the behavior of a TCP, described packet by packet, and checked in virtual time.
//!
//! The language is packetdrill's (<https://github.com/google/packetdrill>): system calls, packets that arrive (`<`),
//! packets that are expected (`>`), and statements about the connection (`%{ assert tcpi_snd_cwnd == 10 }%`), which are
//! Python: the report has them with their values, for the caller to evaluate. The endpoint is sans-IO and time is an
//! argument, so a script runs in no time and to the nanosecond. Shell blocks are data: sysctls, routes and queues that
//! they would set become fields of the profile, and nothing is executed.
//!
//! ```
//! use firstflight_script::{Verdict, run_text};
//!
//! let script = "
//! --profile=rfc
//! --set=initial_window=rfc3390
//!     0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
//!    +0 bind(3, ..., ...) = 0
//!    +0 listen(3, 1) = 0
//!    +0 < S 0:0(0) win 65535 <mss 1460>
//!    +0 > S. 0:0(0) ack 1 <...>
//!   +.1 < . 1:1(0) ack 1 win 65535
//!    +0 accept(3, ..., ...) = 4
//!    +0 write(4, ..., 20000) = 20000
//!    +0 > . 1:4381(4380) ack 1
//! ";
//! assert_eq!(run_text(script, 1_000).verdict, Verdict::Pass);
//! ```

mod lexer;
mod options;
mod preamble;
mod problem;
mod reader;
mod report;
mod run;
mod script;
mod settings;
mod wire;

pub use report::{Check, Known, Report, Verdict};
pub use run::run_text;
