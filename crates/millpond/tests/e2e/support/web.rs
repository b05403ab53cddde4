//! A web server whose replies a test writes itself.

use std::{
    io::{self, BufRead as _, BufReader},
    net::{TcpListener, TcpStream},
};

/// Starts a server and returns its port. `answer` gets a connection and the head of each request on it, in lower case. Its error
/// closes the connection.
pub fn serve(answer: impl Fn(&TcpStream, &str) -> io::Result<()> + Clone + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            std::thread::spawn(move || answer_all(&stream, &answer));
        }
    });
    port
}

fn answer_all(stream: &TcpStream, answer: &impl Fn(&TcpStream, &str) -> io::Result<()>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let (mut head, mut line) = (String::new(), String::new());
        while reader.read_line(&mut line).is_ok_and(|count| count > 2) {
            head.push_str(&line.to_ascii_lowercase());
            line.clear();
        }
        if head.is_empty() || answer(stream, &head).is_err() {
            return;
        }
    }
}
