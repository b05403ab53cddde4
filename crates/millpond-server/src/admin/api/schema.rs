//! Parts that all operations of the OpenAPI document share.

use serde::Serialize;
use utoipa::{
    Modify, PartialSchema, ToSchema,
    openapi::{
        ContentBuilder, OpenApi, Ref, RefOr, ResponseBuilder,
        path::{Operation, PathItem},
        security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme},
    },
};

/// A refusal, or a failure (RFC 9457).
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[allow(dead_code, reason = "the shape of crate::problem::Problem")]
struct Problem {
    /// `about:blank`.
    r#type: String,
    /// The status in words.
    title: String,
    /// Status code.
    status: u16,
    /// Cause of this occurrence.
    detail: Option<String>,
    /// The asset that was asked for.
    asset: Option<String>,
    /// Each fault of a configuration.
    #[schema(required = false)]
    errors: Vec<String>,
    /// Id of the request in the log.
    request_id: Option<String>,
}

/// Adds the problem reply, and the token, to every operation.
pub(super) struct Common;

impl Modify for Common {
    fn modify(&self, document: &mut OpenApi) {
        document.info.version = env!("CARGO_PKG_VERSION").to_owned();
        let components = document.components.get_or_insert_default();
        components.schemas.insert("Problem".to_owned(), Problem::schema());
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
        let failure = ResponseBuilder::new()
            .description("A refusal, or a failure")
            .content(crate::problem::CONTENT_TYPE, content)
            .build();
        components.responses.insert("Failure".to_owned(), RefOr::T(failure));
        let token = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("The setting admin-token. Without it, and by a socket file, no token is needed."));
        components.security_schemes.insert("token".to_owned(), SecurityScheme::Http(token.build()));
        document.security =
            Some(vec![SecurityRequirement::default(), SecurityRequirement::new::<_, [&str; 0], _>("token", [])]);
        for operation in document.paths.paths.values_mut().flat_map(operations) {
            let failure = RefOr::Ref(Ref::from_response_name("Failure"));
            operation.responses.responses.insert("default".to_owned(), failure);
        }
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.put, &mut item.post, &mut item.patch, &mut item.delete].into_iter().flatten()
}
