//! TLS 1.3 whose flights have the sizes asked for: the certificate and the ClientHello are padded.
//!
//! An extension that nobody has to understand pads the certificate. Names of application protocols that the server does
//! not speak pad the ClientHello. Sizes are measured on a handshake in memory.

use std::sync::Arc;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::{
    DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime},
    quic,
};

use crate::Outcome;

pub(crate) const NAME: &str = "server";
const PROTOCOL: &[u8] = b"firstflight";
/// Of the arc for experiments; not critical, so that it is ignored.
const PADDING: &[u64] = &[1, 3, 6, 1, 4, 1, 32473, 1];
/// Of quinn's transport parameters, which are part of a ClientHello and of a server's flight.
const TRANSPORT_PARAMETERS: usize = 80;
/// The lengths in a certificate's headers grow with it, and those change its size.
const MOST_STEPS: usize = 8;
/// A signature with ECDSA has 70 to 72 bytes.
const NEAR: usize = 4;
const MOST_NAME: usize = 255;

pub(crate) struct PaddedServer {
    pub(crate) config: QuicServerConfig,
    /// Bytes of the server's flight: ServerHello to Finished.
    pub(crate) flight_bytes: usize,
}

pub(crate) struct PaddedClient {
    pub(crate) config: QuicClientConfig,
    pub(crate) hello_bytes: usize,
}

/// A server whose flight has `wanted` bytes, or a few more or less. An error if it has more without padding.
pub(crate) fn server(wanted: usize) -> Outcome<PaddedServer> {
    let mut padding = 0;
    for _ in 0..MOST_STEPS {
        let config = server_config(padding)?;
        let (_, flight_bytes) = flights(client_config(0)?, config.clone())?;
        if flight_bytes.abs_diff(wanted) <= NEAR {
            return Ok(PaddedServer { config: Arc::new(config).try_into()?, flight_bytes });
        }
        padding = (padding + wanted)
            .checked_sub(flight_bytes)
            .ok_or_else(|| format!("the server's flight has {flight_bytes} bytes without padding, not {wanted}"))?;
    }
    Err(format!("no padding makes a server's flight of {wanted} bytes").into())
}

/// A client whose ClientHello has `wanted` bytes, or more if it has more without padding.
pub(crate) fn client(wanted: usize) -> Outcome<PaddedClient> {
    let server = server_config(0)?;
    let (bare, _) = flights(client_config(0)?, server.clone())?;
    let config = client_config(wanted.saturating_sub(bare))?;
    let (hello_bytes, _) = flights(config.clone(), server)?;
    Ok(PaddedClient { config: Arc::new(config).try_into()?, hello_bytes })
}

/// Bytes of the ClientHello and of the server's flight.
fn flights(client: rustls::ClientConfig, server: rustls::ServerConfig) -> Outcome<(usize, usize)> {
    let parameters = vec![0; TRANSPORT_PARAMETERS];
    let name = ServerName::try_from(NAME)?;
    let mut client = quic::ClientConnection::new(Arc::new(client), quic::Version::V1, name, parameters.clone())?;
    let mut server = quic::ServerConnection::new(Arc::new(server), quic::Version::V1, parameters)?;
    let mut hello = Vec::new();
    client.write_hs(&mut hello);
    server.read_hs(&hello)?;
    let mut flight = Vec::new();
    while server.write_hs(&mut flight).is_some() {}
    Ok((hello.len(), flight.len()))
}

fn server_config(padding: usize) -> Outcome<rustls::ServerConfig> {
    let key = KeyPair::generate()?;
    let mut parameters = CertificateParams::new(vec![NAME.to_owned()])?;
    if padding > 0 {
        parameters.custom_extensions.push(CustomExtension::from_oid_content(PADDING, vec![0; padding]));
    }
    let certificate = parameters.self_signed(&key)?;
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let mut config = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.into()], key)?;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(config)
}

fn client_config(padding: usize) -> Outcome<rustls::ClientConfig> {
    let mut config = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyServer(provider())))
        .with_no_client_auth();
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    let mut left = padding;
    while left > 1 {
        // A byte of each name is its length. None may be empty, so none leaves one byte.
        let name = if left == MOST_NAME + 2 { MOST_NAME - 1 } else { MOST_NAME.min(left - 1) };
        config.alpn_protocols.push(vec![b'x'; name]);
        left -= name + 1;
    }
    Ok(config)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Takes the certificate of any server, as nobody has signed it, and checks that the server has its key.
#[derive(Debug)]
struct AnyServer(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
