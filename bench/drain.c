// A load client that doesn't copy: requests in turn over some connections, replies thrown away in the kernel
// (MSG_TRUNC, tcp(7)). With it the server is the limit where a client that reads would be.
//
// drain PORT CONNECTIONS SECONDS FILE: lines of FILE are PATH FIRST-LAST. Prints requests, bytes and seconds as JSON.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct conn {
    int fd;
    long left; // of the body; -1 while the head is awaited
    char head[4096];
    int have;
};

static char **requests;
static int count, next;
static long done, bytes;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void ask(struct conn *c) {
    const char *text = requests[next++ % count];
    if (send(c->fd, text, strlen(text), MSG_NOSIGNAL) < 0) die("send");
    c->left = -1;
    c->have = 0;
}

// Reads the head, without what follows it; 0 while it is not whole.
static int head(struct conn *c) {
    ssize_t got = recv(c->fd, c->head, sizeof c->head - 1, MSG_PEEK | MSG_DONTWAIT);
    if (got <= 0) {
        if (got == 0) die("closed");
        return 0;
    }
    c->head[got] = 0;
    char *end = strstr(c->head, "\r\n\r\n");
    if (!end) return 0;
    char *length = strcasestr(c->head, "content-length:");
    if (strncmp(c->head + 9, "206", 3) || !length) {
        fprintf(stderr, "%.60s\n", c->head);
        exit(1);
    }
    c->left = end + 4 - c->head + atol(length + 15);
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    int connections = atoi(argv[2]);
    double seconds = atof(argv[3]);
    FILE *file = fopen(argv[4], "r");
    if (!file) die(argv[4]);
    char path[1024], range[64];
    requests = malloc(sizeof *requests * 1000000);
    while (count < 1000000 && fscanf(file, "%1000s %60s", path, range) == 2)
        if (asprintf(&requests[count++], "GET %s HTTP/1.1\r\nHost: a\r\nRange: bytes=%s\r\n\r\n", path, range) < 0) return 1;
    int poll = epoll_create1(0);
    struct conn *all = calloc(connections, sizeof *all);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (int i = 0; i < connections; i++) {
        all[i].fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(all[i].fd, (struct sockaddr *)&to, sizeof to)) die("connect");
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &all[i]};
        epoll_ctl(poll, EPOLL_CTL_ADD, all[i].fd, &event);
        ask(&all[i]);
    }
    double began = now();
    while (now() - began < seconds) {
        struct epoll_event events[64];
        int ready = epoll_wait(poll, events, 64, 100);
        for (int i = 0; i < ready; i++) {
            struct conn *c = events[i].data.ptr;
            if (c->left < 0 && !head(c)) continue;
            while (c->left > 0) {
                ssize_t got = recv(c->fd, NULL, c->left, MSG_TRUNC | MSG_DONTWAIT);
                if (got <= 0) break;
                c->left -= got;
                bytes += got;
            }
            if (c->left == 0) {
                done++;
                ask(c);
            }
        }
    }
    printf("{\"requests\": %ld, \"bytes\": %ld, \"seconds\": %.6f}\n", done, bytes, now() - began);
}
