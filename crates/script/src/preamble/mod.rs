//! Shell blocks, understood as settings and never executed: sysctls, module parameters, routes and queues.

mod commands;
mod defaults;
mod shell;
mod sysctl;

use crate::problem::Problem;
use crate::script::Shell;
use crate::settings::Settings;
pub(crate) use commands::IPV4_AND_TCP_HEADER_BYTES;

/// What shell blocks decide.
#[derive(Clone, PartialEq, Debug)]
pub struct Environment {
    /// The TCP of both kinds of endpoint.
    pub settings: Settings,
    /// Retransmissions of a SYN; none: as the profile says.
    pub syn_retries: Option<u32>,
    /// Retransmissions of a SYN-ACK; none: as the profile says.
    pub synack_retries: Option<u32>,
    /// The queue of the interface takes no packet.
    pub interface_is_full: bool,
}

impl Environment {
    /// An environment with these settings.
    pub fn new(settings: Settings) -> Self {
        Self { settings, syn_retries: None, synack_retries: None, interface_is_full: false }
    }

    /// Takes over what a shell block sets.
    ///
    /// # Errors
    /// The first command that is not understood, or whose setting has no counterpart here.
    pub fn apply(&mut self, shell: &Shell) -> Result<(), Problem> {
        for command in shell::commands(&shell.text, shell.line) {
            commands::apply(self, &command).map_err(|sentence| Problem::unsupported(command.line, sentence))?;
        }
        Ok(())
    }
}
