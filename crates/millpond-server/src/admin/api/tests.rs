use super::{super::tests::desk, *};
use bytes::Bytes;
use http::Method;
use std::collections::BTreeSet;

/// Where the document is kept for readers.
const COPY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/openapi.json");

fn state() -> Arc<AdminState> {
    desk().state()
}

#[test]
fn the_committed_document_is_that_of_the_code() {
    let text = DOCUMENT.to_pretty_json().unwrap() + "\n";
    if std::env::var_os("MILLPOND_WRITE_DOCS").is_some() {
        std::fs::write(COPY, &text).unwrap();
    }
    let is_same = std::fs::read_to_string(COPY).is_ok_and(|copy| copy == text);
    assert!(
        is_same,
        "docs/reference/openapi.json is out of date: MILLPOND_WRITE_DOCS=1 cargo test -p millpond-server --lib -- documentation:: api::"
    );
}

#[test]
fn the_document_is_openapi_3_1_with_a_problem_for_every_operation() {
    let document: serde_json::Value = serde_json::to_value(&*DOCUMENT).unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["components"]["securitySchemes"]["token"]["scheme"], "bearer");
    let mut names = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let at = format!("{method} {path}");
            assert!(names.insert(operation["operationId"].as_str().unwrap().to_owned()), "{at}: not unique");
            assert_eq!(operation["responses"]["default"]["$ref"], "#/components/responses/Failure", "{at}");
            assert!(!operation["summary"].as_str().unwrap_or_default().is_empty(), "{at} has a summary");
        }
    }
    assert!(names.len() > 40, "{}", names.len());
}

#[tokio::test]
async fn every_operation_of_the_document_is_performed() {
    let state = state();
    for operation in ROUTES.operations() {
        let request = ApiRequest { parameters: vec!["1".to_owned()], ..ApiRequest::default() };
        if let Err(problem) = dispatch(operation, request, &state).await {
            assert_ne!(problem.status, StatusCode::NOT_IMPLEMENTED, "{operation}");
        }
    }
}

#[test]
fn routes_have_methods_and_decoded_components() {
    let found =
        |method: Method, path: &str| ROUTES.find(&method, path).map(|route| (route.operation, route.parameters));
    assert_eq!(found(Method::GET, "/api/v1/overview"), Ok(("overview", vec![])));
    assert_eq!(found(Method::HEAD, "/api/v1/overview"), Ok(("overview", vec![])));
    let stream = found(Method::DELETE, "/api/v1/streams/cams%2Ffront%20door/publisher");
    assert_eq!(stream, Ok(("end_publisher", vec!["cams/front door".to_owned()])));
    let passed = found(Method::POST, "/api/v1/cluster/nodes/b/api/streams/a%2Fb/publisher");
    assert_eq!(passed, Ok(("post_to_node", vec!["b".to_owned(), "streams/a%2Fb/publisher".to_owned()])));
    assert_eq!(found(Method::GET, "/api/v1/cluster/nodes/b/api/"), Err(NoRoute::Path));
    assert_eq!(found(Method::GET, "/api/v1/streams/%ff"), Err(NoRoute::Component));
    for path in
        ["/api/v1", "/api/v1/", "/api/v2/overview", "/api/v1/streams/a/b", "/api/v1/sessions/", "/api/v1/overview/"]
    {
        assert_eq!(found(Method::GET, path), Err(NoRoute::Path), "{path}");
    }
    assert_eq!(found(Method::PUT, "/api/v1/cache"), Err(NoRoute::Method("GET, PATCH, HEAD".to_owned())));
}

#[tokio::test]
async fn unknown_parameters_and_fields_are_refused() {
    let state = state();
    for (operation, query, body) in [
        ("list_sessions", "limits=3", ""),
        ("list_sessions", "limit=0", ""),
        ("list_sessions", "limit=1001", ""),
        ("list_sessions", "limit=-1", ""),
        ("list_sessions", "limit=1&limit=2", ""),
        ("list_sessions", "kind=tcp", ""),
        ("viewing", "day=soon", ""),
        ("viewing", "limit=0", ""),
        ("viewing", "days=3", ""),
        ("list_streams", "state=asleep", ""),
        ("list_objects", "pinned=maybe", ""),
        ("list_lines", "level=loud", ""),
        ("get_map", "", ""),
        ("get_map", "path=a&cells=0", ""),
        ("change_cache", "", "[]"),
        ("change_cache", "", "{\"sizes\": 1}"),
        ("change_cache", "", "{\"size\": \"much\"}"),
        ("change_cache", "", "{\"size\": 1"),
        ("purge", "", "{}"),
        ("purge", "", "{\"path\": \"a\", \"pattern\": \"a\"}"),
        ("purge_cluster", "", "{\"soft\": true}"),
        ("find_title", "", ""),
        ("purge_cluster", "", "{\"path\": \"a\", \"hard\": true}"),
        ("pin", "", "{\"path\": \"a\", \"first\": \"soon\"}"),
    ] {
        let request =
            ApiRequest { query: query.to_owned(), body: Bytes::from_static(body.as_bytes()), ..ApiRequest::default() };
        let refused = dispatch(operation, request, &state).await;
        assert_eq!(refused.unwrap_err().status, StatusCode::BAD_REQUEST, "{operation} {query} {body}");
    }
}
