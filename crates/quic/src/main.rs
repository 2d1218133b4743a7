//! A server and a client over QUIC, for the testbed's hosts: quinn's stack as it is, with the settings that it has.
//!
//! ```text
//! firstflight-quic serve ADDRESS:PORT SETTINGS    # writes a line of JSON when it listens, ends with its standard input
//! firstflight-quic fetch ADDRESS:PORT SETTINGS    # one connection and response; writes a line of JSON
//! ```
//!
//! SETTINGS is a JSON object of `datagram_bytes` and, for a server, `initial_window_bytes`, `congestion_control` and
//! `flight_bytes`; for a client `hello_bytes`, `response_bytes`, `request_bytes` and `within_s`.

use std::{error::Error, io::Write, net::SocketAddr, process::ExitCode, sync::Arc, time::Duration};

use quinn::{ClientConfig, Endpoint, ServerConfig, TransportConfig, VarInt, congestion};
use serde_json::{Value, json};
use tokio::{
    io::AsyncReadExt,
    time::{Instant, timeout},
};

mod padded;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// A request is the decimal number of bytes asked for, padded with spaces to its length.
const MOST_REQUEST_BYTES: usize = 1 << 16;
/// The client's last datagram closes the connection; so long it may take to leave.
const CLOSING: Duration = Duration::from_millis(20);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("firstflight-quic: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Outcome<()> {
    let [what, address, settings] = arguments else {
        return Err("write serve or fetch, ADDRESS:PORT and settings as JSON".into());
    };
    let (address, settings): (SocketAddr, Value) = (address.parse()?, serde_json::from_str(settings)?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match what.as_str() {
        "serve" => runtime.block_on(serve(address, &settings)),
        "fetch" => runtime.block_on(fetch(address, &settings)),
        _ => Err(format!("{what} is neither serve nor fetch").into()),
    }
}

fn number(settings: &Value, key: &str) -> Outcome<u64> {
    settings[key].as_u64().ok_or_else(|| format!("{key} is {}, not a number of bytes", settings[key]).into())
}

/// Datagrams keep one size, so that a first flight in bytes is one in datagrams. Offloads stay off: the link sees
/// datagrams when the stack sends them.
fn transport(settings: &Value) -> Outcome<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.initial_mtu(number(settings, "datagram_bytes")?.try_into()?);
    transport.mtu_discovery_config(None);
    transport.enable_segmentation_offload(false);
    Ok(transport)
}

async fn serve(address: SocketAddr, settings: &Value) -> Outcome<()> {
    let crypto = padded::server(number(settings, "flight_bytes")?.try_into()?)?;
    let flight_bytes = crypto.flight_bytes;
    let mut transport = transport(settings)?;
    let window = number(settings, "initial_window_bytes")?;
    match settings["congestion_control"].as_str() {
        Some("cubic") => {
            let mut cubic = congestion::CubicConfig::default();
            cubic.initial_window(window);
            transport.congestion_controller_factory(Arc::new(cubic));
        }
        Some("reno") => {
            let mut reno = congestion::NewRenoConfig::default();
            reno.initial_window(window);
            transport.congestion_controller_factory(Arc::new(reno));
        }
        _ => return Err(format!("congestion_control is {}, not cubic or reno", settings["congestion_control"]).into()),
    }
    let mut config = ServerConfig::with_crypto(Arc::new(crypto.config));
    config.transport_config(Arc::new(transport));
    let endpoint = Endpoint::server(config, address)?;
    say(&json!({ "flight_bytes": flight_bytes }))?;
    let mut input = tokio::io::stdin();
    let mut nothing = [0];
    loop {
        tokio::select! {
            incoming = endpoint.accept() => match incoming {
                Some(incoming) => drop(tokio::spawn(answer(incoming))),
                None => return Ok(()),
            },
            _ = input.read(&mut nothing) => return Ok(()),
        }
    }
}

/// All requests of a connection. One that breaks ends alone: the client reports it.
async fn answer(incoming: quinn::Incoming) -> Option<()> {
    let connection = incoming.await.ok()?;
    loop {
        let (mut send, mut receive) = connection.accept_bi().await.ok()?;
        let request = receive.read_to_end(MOST_REQUEST_BYTES).await.ok()?;
        let size: usize = std::str::from_utf8(&request).ok()?.trim().parse().ok()?;
        send.write_all(&vec![b'x'; size]).await.ok()?;
        send.finish().ok()?;
    }
}

/// Times count from the moment at which the client begins to connect.
async fn fetch(address: SocketAddr, settings: &Value) -> Outcome<()> {
    let hello = padded::client(number(settings, "hello_bytes")?.try_into()?)?;
    let mut config = ClientConfig::new(Arc::new(hello.config));
    config.transport_config(Arc::new(transport(settings)?));
    let any: SocketAddr = if address.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" }.parse()?;
    let endpoint = Endpoint::client(any)?;
    let size = number(settings, "response_bytes")?;
    let width: usize = number(settings, "request_bytes")?.try_into()?;
    let request = format!("{size:<width$}");
    let within = Duration::from_secs_f64(settings["within_s"].as_f64().ok_or("within_s is missing")?.max(0.0));
    let start = Instant::now();
    let mut told = json!({ "port": endpoint.local_addr()?.port(), "hello_bytes": hello.hello_bytes });
    let mut found = Found::default();
    let ended = timeout(within, exchange(&endpoint, config, address, &request, start, &mut found)).await;
    told["total_s"] = start.elapsed().as_secs_f64().into();
    told["completed"] = (matches!(ended, Ok(Ok(()))) && found.bytes == size).into();
    told["connect_s"] = found.connect_s.into();
    told["first_byte_s"] = found.first_byte_s.into();
    told["body_bytes"] = found.bytes.into();
    told["error"] = match ended {
        Ok(Err(error)) => error.to_string().into(),
        _ => Value::Null,
    };
    say(&told)?;
    endpoint.close(VarInt::from_u32(0), b"");
    let _ = timeout(CLOSING, endpoint.wait_idle()).await;
    Ok(())
}

#[derive(Default)]
struct Found {
    connect_s: f64,
    first_byte_s: f64,
    bytes: u64,
}

async fn exchange(
    endpoint: &Endpoint,
    config: ClientConfig,
    address: SocketAddr,
    request: &str,
    start: Instant,
    found: &mut Found,
) -> Outcome<()> {
    let connection = endpoint.connect_with(config, address, padded::NAME)?.await?;
    found.connect_s = start.elapsed().as_secs_f64();
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(request.as_bytes()).await?;
    send.finish()?;
    let mut buffer = vec![0; 1 << 16];
    while let Some(bytes) = receive.read(&mut buffer).await? {
        if found.bytes == 0 {
            found.first_byte_s = start.elapsed().as_secs_f64();
        }
        found.bytes += bytes as u64;
    }
    Ok(())
}

fn say(line: &Value) -> Outcome<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}")?;
    Ok(output.flush()?)
}
