//! The values of names in `%{ }%` blocks: `tcpi_...` of the connection, and Linux's symbols.

use crate::report::Known;
use firstflight_tcp::{Endpoint, Info, Nanos, State};

/// Fields of `struct tcp_info`, without `tcpi_`, that the endpoint keeps no account of.
const NOT_KEPT: &str = "\
    ato busy_time bytes_acked bytes_received bytes_retrans bytes_sent data_segs_in data_segs_out delivery_rate \
    delivery_rate_app_limited fackets fastopen_client_fail last_ack_recv last_ack_sent last_data_recv \
    last_data_sent max_pacing_rate pmtu probes rcv_mss rcv_ooopack rcv_rtt rcv_space rcv_ssthresh rcv_wnd rehash \
    rwnd_limited segs_in segs_out sndbuf_limited snd_wnd total_rto total_rto_recoveries total_rto_time";

/// Fields that only a sender with a scoreboard keeps.
const OF_THE_SCOREBOARD: &str = "delivered delivered_ce dsack_dups lost min_rtt reord_seen reordering retrans sacked";

/// Linux's "arbitrarily high" threshold.
const INFINITE_SSTHRESH: i64 = 0x7fff_ffff;

/// The value of `name` on a connection. Without a connection only symbols are known.
pub(super) fn known(endpoint: Option<&Endpoint>, name: &str) -> Option<Known> {
    if let Some(number) = symbol(name) {
        return Some(Known::Value(number));
    }
    if is_among(NOT_KEPT, name) {
        return Some(Known::Unsupported(format!("the endpoint keeps no {name}")));
    }
    let Some(endpoint) = endpoint else {
        let sentence = format!("{name} is asked for before there is a connection");
        return name.starts_with("tcpi_").then_some(Known::Unsupported(sentence));
    };
    let info = endpoint.info();
    if !info.scoreboard && is_among(OF_THE_SCOREBOARD, name) {
        return Some(Known::Unsupported(format!("the endpoint keeps no {name} without a scoreboard")));
    }
    field(&info, endpoint.state(), name).map(Known::Value)
}

fn is_among(fields: &str, name: &str) -> bool {
    name.strip_prefix("tcpi_").is_some_and(|name| fields.split_whitespace().any(|field| field == name))
}

// Linux: include/uapi/linux/tcp.h.
fn symbol(name: &str) -> Option<i64> {
    Some(match name {
        "TCP_CA_Open" => 0,
        "TCP_CA_Disorder" => 1,
        "TCP_CA_CWR" => 2,
        "TCP_CA_Recovery" => 3,
        "TCP_CA_Loss" => 4,
        "TCP_ESTABLISHED" => 1,
        "TCP_SYN_SENT" => 2,
        "TCP_SYN_RECV" => 3,
        "TCP_FIN_WAIT1" => 4,
        "TCP_FIN_WAIT2" => 5,
        "TCP_TIME_WAIT" => 6,
        "TCP_CLOSE" => 7,
        "TCP_CLOSE_WAIT" => 8,
        "TCP_LAST_ACK" => 9,
        "TCP_LISTEN" => 10,
        "TCP_CLOSING" => 11,
        "TCPI_OPT_TIMESTAMPS" => 1,
        "TCPI_OPT_SACK" => 2,
        "TCPI_OPT_WSCALE" => 4,
        "TCPI_OPT_ECN" => 8,
        _ => return None,
    })
}

fn field(info: &Info, state: State, name: &str) -> Option<i64> {
    let count = |count: u32| i64::from(count);
    Some(match name.strip_prefix("tcpi_")? {
        "state" => symbol(match state {
            State::Closed => "TCP_CLOSE",
            State::Listen => "TCP_LISTEN",
            State::SynSent => "TCP_SYN_SENT",
            State::SynReceived => "TCP_SYN_RECV",
            State::Established => "TCP_ESTABLISHED",
            State::FinWait1 => "TCP_FIN_WAIT1",
            State::FinWait2 => "TCP_FIN_WAIT2",
            State::CloseWait => "TCP_CLOSE_WAIT",
            State::Closing => "TCP_CLOSING",
            State::LastAck => "TCP_LAST_ACK",
            State::TimeWait => "TCP_TIME_WAIT",
        })?,
        "ca_state" => i64::from(info.recovery_state),
        "retransmits" => count(info.retries),
        "backoff" => count(info.backoff),
        "options" => {
            i64::from(info.timestamps)
                | i64::from(info.sack) << 1
                | i64::from(info.window_scaling) << 2
                | i64::from(info.ecn) << 3
        }
        "rto" => microseconds(info.rto_ns),
        "snd_mss" => count(info.mss_bytes),
        "advmss" => count(info.announced_mss_bytes),
        "unacked" => count(info.unacked),
        "sacked" => count(info.sacked),
        "lost" => count(info.lost),
        "retrans" => count(info.retransmitted),
        "total_retrans" => count(info.total_retransmitted),
        "rtt" => microseconds(info.srtt_ns),
        "rttvar" => microseconds(info.rttvar_ns),
        "min_rtt" => info.min_rtt_ns.map_or(i64::from(u32::MAX), microseconds),
        "snd_ssthresh" => info.ssthresh_segments.map_or(INFINITE_SSTHRESH, count),
        "snd_cwnd" => count(info.cwnd_segments),
        "reordering" => count(info.reordering),
        "reord_seen" => count(info.reordering_seen),
        "delivered" => count(info.delivered),
        "delivered_ce" => count(info.delivered_marked),
        "dsack_dups" => count(info.dsack_duplicates),
        "notsent_bytes" => info.not_sent_bytes as i64,
        // Linux: all ones as long as nothing is paced.
        "pacing_rate" => info.pacing_rate.map_or(-1, |rate| rate as i64),
        _ => return None,
    })
}

fn microseconds(time: Nanos) -> i64 {
    (time / 1_000) as i64
}
