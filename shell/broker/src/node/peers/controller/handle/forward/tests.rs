//! The content of an Envelope is readable in the version that its header names.

use super::*;
use barnabas_wire::encode_response;
use barnabas_wire::messages::delete_topics_request::DeleteTopicState;
use barnabas_wire::messages::delete_topics_response::DeletableTopicResult;
use barnabas_wire::messages::{DeleteTopicsRequest, DeleteTopicsResponse};

fn here() -> Address {
    Address { host: "controller".into(), port: 9093 }
}

#[test]
fn a_request_goes_in_the_version_that_its_body_has() {
    let topics = vec![DeleteTopicState { name: Some("t".into()), ..DeleteTopicState::default() }];
    let body: RequestBody = DeleteTopicsRequest { topics, ..DeleteTopicsRequest::default() }.into();
    let client = AskingClient {
        principal: "User:alice".into(),
        token_authenticated: false,
        address: [10, 0, 0, 7].into(),
        client_id: Some("c".into()),
    };
    let packed = envelope(&body, 6, &client).expect("version 6 names topics in this form");
    let (header, read) = RequestBody::decode_frame(packed.request_data, 1 << 20).expect("it can be read");
    assert_eq!((header.request_api_version, read), (6, body.clone()));
    assert_eq!(&*packed.client_host_address, [10, 0, 0, 7]);
    assert_eq!(header.client_id.as_deref(), Some("c"), "the controller's quotas look at it");
    assert!(envelope(&body, 5, &client).is_err(), "version 5 does not");
}

#[test]
fn an_answer_is_read_in_the_version_that_was_asked_in() {
    let result = DeletableTopicResult { name: Some("t".into()), ..DeletableTopicResult::default() };
    let response = DeleteTopicsResponse { responses: vec![result], ..DeleteTopicsResponse::default() };
    let body: ResponseBody = response.into();
    let data = encode_response(0, &body, 6).expect("written").into_bytes();
    let answer = EnvelopeResponse { response_data: Some(data), ..EnvelopeResponse::default() };
    let read = unpack(answer, ApiKey::DeleteTopics, 6, &here());
    assert!(matches!(read, Ok(Unpacked::Answer(read)) if read == body));
}

#[test]
fn lasting_refusals_differ_from_passing_ones() {
    let said = |code: ErrorCode| {
        let answer = EnvelopeResponse { error_code: code.code(), ..EnvelopeResponse::default() };
        unpack(answer, ApiKey::DeleteTopics, 6, &here())
    };
    for code in [ErrorCode::UnsupportedVersion, ErrorCode::InvalidRequest] {
        assert!(matches!(said(code), Ok(Unpacked::Refused(refused)) if refused == code));
    }
    for code in [ErrorCode::NotController, ErrorCode::RequestTimedOut, ErrorCode::None] {
        assert!(matches!(said(code), Err(LinkError::Lost { .. })), "{}", code.name());
    }
}
