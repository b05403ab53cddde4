use super::*;
use flate2::read::GzDecoder;
use http_body_util::BodyExt;
use std::{collections::BTreeSet, fs, io::Read as _, path::Path};

fn get(path: &str, fields: &[(&str, &str)]) -> Option<Reply> {
    let name = |name: &str| HeaderName::try_from(name).unwrap();
    let headers = fields.iter().map(|(field, value)| (name(field), HeaderValue::try_from(*value).unwrap())).collect();
    answer(&Method::GET, path, &headers)
}

async fn body(reply: Reply) -> Bytes {
    reply.into_body().collect().await.unwrap().to_bytes()
}

/// Paths of the files in a folder, from there.
fn listed(folder: &Path, prefix: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries
        .flat_map(|entry| {
            let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() { listed(&entry.path(), &format!("{name}/")) } else { vec![name] }
        })
        .collect()
}

#[tokio::test]
async fn every_file_is_served_as_it_is() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("console");
    let on_disk: BTreeSet<_> = listed(&folder, "").into_iter().collect();
    let mut served = BTreeSet::new();
    for file in FILES {
        let name = file.path.strip_prefix("/console/").unwrap_or("index.html");
        served.insert(name.to_owned());
        let reply = get(file.path, &[]).unwrap();
        assert_eq!(reply.status(), StatusCode::OK);
        assert_eq!(body(reply).await, fs::read(folder.join(name)).unwrap(), "{name}");
    }
    assert_eq!(served, on_disk);
}

#[test]
fn scripts_import_files_that_are_served() {
    for file in FILES.iter().filter(|file| file.path.ends_with(".js")) {
        let text = str::from_utf8(file.content).unwrap();
        let folder = &file.path[..file.path.rfind('/').unwrap()];
        for line in text.lines().filter(|line| line.starts_with("import ")) {
            let name = line.rsplit('\'').nth(1).unwrap();
            let path = match name.strip_prefix("../") {
                Some(name) => format!("/console/{name}"),
                None => format!("{folder}/{}", name.strip_prefix("./").unwrap()),
            };
            assert!(FILES.iter().any(|file| file.path == path), "{}: {name}", file.path);
        }
    }
}

#[tokio::test]
async fn files_are_compressed_and_compared() {
    let plain = get("/console/app.js", &[]).unwrap();
    let coded = get("/console/app.js", &[("accept-encoding", "gzip")]).unwrap();
    assert!(!plain.headers().contains_key(header::CONTENT_ENCODING));
    assert_eq!(coded.headers()[header::CONTENT_ENCODING], "gzip");
    assert_eq!(coded.headers()[header::VARY], "accept-encoding");
    let tags = [&plain, &coded].map(|reply| reply.headers()[header::ETAG].to_str().unwrap().to_owned());
    assert_ne!(tags[0], tags[1]);
    let mut decoded = Vec::new();
    GzDecoder::new(&*body(coded).await).read_to_end(&mut decoded).unwrap();
    assert_eq!(decoded, body(plain).await);

    let same = get("/console/app.js", &[("accept-encoding", "gzip"), ("if-none-match", &tags[1])]).unwrap();
    assert_eq!(same.status(), StatusCode::NOT_MODIFIED);
    assert_eq!(same.headers()[header::ETAG], tags[1]);
    assert!(body(same).await.is_empty());
    let other = get("/console/app.js", &[("if-none-match", &tags[1])]).unwrap();
    assert_eq!(other.status(), StatusCode::OK, "the client has another coding of it");
}

#[tokio::test]
async fn all_files_take_less_than_300_kb() {
    let mut sum = 0;
    for file in FILES {
        sum += body(get(file.path, &[("accept-encoding", "gzip")]).unwrap()).await.len();
    }
    assert!(sum < 300_000, "{sum} bytes compressed");
}

#[test]
fn nothing_comes_from_elsewhere() {
    for file in FILES {
        let reply = get(file.path, &[]).unwrap();
        let policy = reply.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self';") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(reply.headers()[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
        assert_eq!(reply.headers()[header::REFERRER_POLICY], "no-referrer");
        let text = str::from_utf8(file.content).unwrap();
        // The one address is the name of SVG's namespace. Placeholders of fields are addresses of examples.
        let text = text.replace("http://www.w3.org/2000/svg", "").replace("http://etcd:2379", "");
        assert!(!text.contains("http://") && !text.contains("https://"), "{}", file.path);
    }
}

#[test]
fn other_requests_are_not_the_consoles() {
    for path in ["/metrics", "/console/none.js", "/console/../mod.rs", "/api/v1/version", "/index.html"] {
        assert!(get(path, &[]).is_none(), "{path}");
    }
    for (path, root) in [("/console", "./"), ("/console/", "../")] {
        assert_eq!(get(path, &[]).unwrap().headers()[header::LOCATION], root, "relative, below the prefix of a proxy");
    }
    let posted = answer(&Method::POST, "/", &HeaderMap::new()).unwrap();
    assert_eq!(posted.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(posted.headers()[header::ALLOW], "GET, HEAD");
}
