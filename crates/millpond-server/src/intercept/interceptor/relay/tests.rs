use super::*;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

/// Two ends of a connection.
async fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let ours = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    (ours, listener.accept().await.unwrap().0)
}

/// Result of a relay, and the bytes that were passed on to the server and to the client.
type Relay = tokio::task::JoinHandle<(io::Result<()>, u64, u64)>;

/// A relay between two connections, and their far ends: client and server.
async fn relayed(idle: Duration) -> (Relay, TcpStream, TcpStream) {
    relayed_by(idle, FastThreads::new()).await
}

async fn relayed_by(idle: Duration, threads: FastThreads) -> (Relay, TcpStream, TcpStream) {
    let ((client, ours), (theirs, server)) = (connection().await, connection().await);
    let task = tokio::spawn(async move {
        let (to_server, to_client) = (Counter::default(), Counter::default());
        let passed = Passed { to_server: &to_server, to_client: &to_client };
        let ended = relay(ours, theirs, idle, passed, &threads).await;
        (ended, to_server.get(), to_client.get())
    });
    (task, client, server)
}

#[tokio::test]
async fn a_side_that_has_ended_still_gets_the_other_ones_bytes() {
    let (task, mut client, mut server) = relayed(Duration::from_secs(60)).await;
    client.write_all(b"question").await.unwrap();
    client.shutdown().await.unwrap();
    let mut asked = Vec::new();
    server.read_to_end(&mut asked).await.unwrap();
    assert_eq!(asked, b"question");
    // More than pipe and sockets hold, to a client that reads later.
    let answer: Vec<u8> = (0..20_000_000_u32).map(|n| (n % 251) as u8).collect();
    let sent = answer.clone();
    let sending = tokio::spawn(async move {
        server.write_all(&sent).await.unwrap();
        server.shutdown().await.unwrap();
    });
    sleep(Duration::from_millis(50)).await;
    let mut got = Vec::new();
    client.read_to_end(&mut got).await.unwrap();
    assert!(got == answer, "{} bytes", got.len());
    sending.await.unwrap();
    let (ended, to_server, to_client) = task.await.unwrap();
    assert!(ended.is_ok());
    assert_eq!((to_server, to_client), (8, 20_000_000));
}

#[tokio::test]
async fn silence_and_resets_end_both_sides() {
    let (task, mut client, mut server) = relayed(Duration::from_millis(50)).await;
    assert_eq!(task.await.unwrap().0.unwrap_err().kind(), io::ErrorKind::TimedOut);
    let mut byte = [0];
    assert_eq!(client.read(&mut byte).await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    assert_eq!(server.read(&mut byte).await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);

    let (task, client, mut server) = relayed(Duration::from_secs(60)).await;
    SockRef::from(&client).set_linger(Some(Duration::ZERO)).unwrap();
    drop(client);
    assert_eq!(server.read(&mut byte).await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    assert!(task.await.unwrap().0.is_err());
}

/// Reads until the predicate holds for the bytes so far. They are numbered bytes of both ends' making.
async fn read_numbered(side: &mut TcpStream, from: usize, until: impl Fn(usize) -> bool) -> usize {
    let (mut buffer, mut at) = (vec![0; 1 << 20], from);
    while !until(at) {
        let count = side.read(&mut buffer).await.unwrap();
        assert!(count > 0, "the end came at byte {at}");
        for byte in &buffer[..count] {
            assert_eq!(*byte, (at % 251) as u8, "byte {at}");
            at += 1;
        }
    }
    at
}

/// Writes numbered bytes, and then waits for a word to end.
async fn write_numbered(mut side: TcpStream, end: tokio::sync::oneshot::Receiver<()>) -> TcpStream {
    let piece: Vec<u8> = (0..251 * 4000).map(|n| (n % 251) as u8).collect();
    tokio::select! {
        () = async { while side.write_all(&piece).await.is_ok() {} } => {}
        _ = end => {}
    }
    side
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fast_connection_has_a_thread_until_it_is_slow() {
    let threads = FastThreads::new();
    let all = threads.free();
    let (task, mut client, server) = relayed_by(Duration::from_secs(60), threads.clone()).await;
    let (end, ended) = tokio::sync::oneshot::channel();
    let writing = tokio::spawn(write_numbered(server, ended));
    // However slow this machine is: some 16 MiB arrive within 128 ms after a while.
    let at = read_numbered(&mut client, 0, |_| threads.free() < all).await;
    let at = read_numbered(&mut client, at, |now| now > at + (64 << 20)).await;
    end.send(()).unwrap();
    let mut server = writing.await.unwrap();
    // A client that reads nothing slows the connection down. What waits in the pipe is not lost.
    while threads.free() < all {
        sleep(Duration::from_millis(5)).await;
    }
    client.write_all(b"and now?").await.unwrap();
    let mut asked = [0; 8];
    server.read_exact(&mut asked).await.unwrap();
    assert_eq!(&asked, b"and now?");
    server.shutdown().await.unwrap();
    drop(server);
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).await.unwrap();
    assert!(rest.iter().enumerate().all(|(n, byte)| *byte == ((at + n) % 251) as u8));
    drop(client);
    let (ended, to_server, to_client) = task.await.unwrap();
    assert!(ended.is_ok(), "{ended:?}");
    assert_eq!((to_server, to_client), (8, (at + rest.len()) as u64));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fast_connection_ends_with_its_task_and_with_each_side() {
    for by in ["task", "client", "server"] {
        let threads = FastThreads::new();
        let all = threads.free();
        let (task, mut client, server) = relayed_by(Duration::from_secs(60), threads.clone()).await;
        let (end, ended) = tokio::sync::oneshot::channel();
        let writing = tokio::spawn(write_numbered(server, ended));
        let at = read_numbered(&mut client, 0, |_| threads.free() < all).await;
        match by {
            "task" => task.abort(),
            "client" => {
                SockRef::from(&client).set_linger(Some(Duration::ZERO)).unwrap();
                drop(client);
                assert!(task.await.unwrap().0.is_err());
                assert!(writing.await.unwrap().write_all(b"more").await.is_err(), "the server sees the reset");
                continue;
            }
            _ => {
                end.send(()).unwrap();
                let server = writing.await.unwrap();
                SockRef::from(&server).set_linger(Some(Duration::ZERO)).unwrap();
                drop(server);
            }
        }
        let mut rest = Vec::new();
        let read = client.read_to_end(&mut rest).await;
        assert!(by == "task" || read.is_err(), "{by}");
        assert!(rest.iter().enumerate().all(|(n, byte)| *byte == ((at + n) % 251) as u8));
        while threads.free() < all {
            sleep(Duration::from_millis(5)).await;
        }
    }
}
