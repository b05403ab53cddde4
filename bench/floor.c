// The least that a server can do for a range of a file: one thread, and for each request recv, send of a fixed head, sendfile.
// No parsing but of the range, no cache, no log, no limits. What the kernel takes for that is the limit for any server.
//
// floor PORT FILE
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

struct conn {
    int fd;
    off_t at, end;
};

static int file, poll;

static void die(const char *what) {
    perror(what);
    exit(1);
}

// Sends what the socket takes; asks to be woken when it takes more.
static void push(struct conn *c) {
    while (c->at < c->end) {
        ssize_t sent = sendfile(c->fd, file, &c->at, c->end - c->at);
        if (sent <= 0) return;
    }
}

static int serve(struct conn *c) {
    char text[4096], head[512];
    if (c->at < c->end) push(c);
    if (c->at < c->end) return 1;
    ssize_t got = recv(c->fd, text, sizeof text - 1, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) return 1;
    if (got <= 0) return 0;
    text[got] = 0;
    char *range = strcasestr(text, "range: bytes=");
    long first = 0, last = 0;
    if (!range || sscanf(range + 13, "%ld-%ld", &first, &last) != 2) {
        const char *none = "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\n\r\n";
        return send(c->fd, none, strlen(none), MSG_NOSIGNAL) > 0;
    }
    c->at = first;
    c->end = last + 1;
    int length = snprintf(head, sizeof head,
        "HTTP/1.1 206 Partial Content\r\nServer: floor\r\nDate: Sat, 01 Jan 2000 00:00:00 GMT\r\n"
        "Content-Type: application/octet-stream\r\nETag: \"0123456789abcdef\"\r\nAccept-Ranges: bytes\r\n"
        "Content-Range: bytes %ld-%ld/%ld\r\nContent-Length: %ld\r\n\r\n", first, last, 1L << 28, last + 1 - first);
    if (send(c->fd, head, length, MSG_MORE | MSG_NOSIGNAL) < 0) return 0;
    push(c);
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    signal(SIGPIPE, SIG_IGN);
    file = open(argv[2], O_RDONLY);
    if (file < 0) die(argv[2]);
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 1024)) die("listen");
    poll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        struct epoll_event events[64];
        int ready = epoll_wait(poll, events, 64, -1);
        for (int i = 0; i < ready; i++) {
            struct conn *c = events[i].data.ptr;
            if (!c) {
                c = calloc(1, sizeof *c);
                c->fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
                setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                struct epoll_event news = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c};
                epoll_ctl(poll, EPOLL_CTL_ADD, c->fd, &news);
            } else if (!serve(c)) {
                close(c->fd);
                free(c);
            }
        }
    }
}
