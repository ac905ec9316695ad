//! A broker that answers as a test wants, for the client and, by its path, for the tools.

use barnabas_wire::messages::api_versions_response::{ApiVersion, ApiVersionsResponse};
use barnabas_wire::messages::metadata_response::{MetadataResponse, MetadataResponseBroker};
use barnabas_wire::{RequestBody, ResponseBody, frame_response};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How long a fetch without news is held back.
const FETCH_WAIT: Duration = Duration::from_millis(5);

/// Answers every request but ApiVersions; `None`: never.
type Says = dyn Fn(RequestBody) -> Option<ResponseBody> + Send + Sync;

/// Listens until its runtime ends. Returns its address. `apis`: keys and newest versions besides ApiVersions.
pub async fn fake_broker(
    apis: &'static [(i16, i16)],
    says: impl Fn(RequestBody) -> Option<ResponseBody> + Send + Sync + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let address = listener.local_addr().expect("bound").to_string();
    let says: Arc<Says> = Arc::new(says);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, apis, says.clone()));
        }
    });
    address
}

async fn serve(mut stream: TcpStream, apis: &'static [(i16, i16)], says: Arc<Says>) {
    while let Ok(length) = stream.read_u32().await {
        let mut frame = vec![0; length as usize];
        stream.read_exact(&mut frame).await.expect("a frame");
        let (header, body) = RequestBody::decode_frame(frame.into(), 1 << 20).expect("a request");
        let answer = match body {
            RequestBody::ApiVersions(_) => {
                let rows = [(18, 3)].iter().chain(apis).map(|&(api_key, max_version)| ApiVersion {
                    api_key,
                    max_version,
                    ..Default::default()
                });
                Some(ApiVersionsResponse { api_keys: rows.collect(), ..Default::default() }.into())
            }
            body => says(body),
        };
        let Some(answer) = answer else { continue };
        if matches!(&answer, ResponseBody::Fetch(fetch) if fetch.responses.is_empty()) {
            // As a broker holds back a fetch that finds nothing.
            tokio::time::sleep(FETCH_WAIT).await;
        }
        let frame = frame_response(header.correlation_id, &answer, header.request_api_version);
        // The client may have closed the connection.
        let _ = stream.write_all(&frame.expect("a response").into_bytes()).await;
    }
}

/// Metadata without topics, with these brokers; the first one is the controller.
pub fn nodes(brokers: &[(i32, &str)]) -> MetadataResponse {
    let broker = |&(node_id, address): &(i32, &str)| {
        let (host, port) = address.rsplit_once(':').expect("host:port");
        let port = port.parse().expect("a port");
        MetadataResponseBroker { node_id, host: host.into(), port, ..Default::default() }
    };
    MetadataResponse {
        brokers: brokers.iter().map(broker).collect(),
        controller_id: brokers[0].0,
        ..Default::default()
    }
}
