// A load client that asks for each path of a file once, over some connections that stay open, and takes the time of each.
// With seconds it begins again at the first path until they are over. Replies are thrown away in the kernel (MSG_TRUNC, tcp(7)).
//
// once PORT CONNECTIONS FILE [SECONDS]: prints requests, bytes, seconds, failures and latencies in milliseconds as JSON.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MOST 2000000

struct conn {
    int fd;
    long left; // of the body; -1 while the head is awaited
    double asked;
    int idle;
    char head[8192];
};

static char **requests;
static double *latencies;
static long count, next, done, failed, bytes, open_requests;
static double seconds, began;

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
    int over = seconds > 0 ? now() - began >= seconds || done >= MOST : next >= count;
    if (over) {
        c->idle = 1;
        return;
    }
    const char *text = requests[next++ % count];
    c->asked = now();
    c->left = -1;
    open_requests++;
    if (send(c->fd, text, strlen(text), MSG_NOSIGNAL) < 0) die("send");
}

// Looks at the head; 0 while it is not whole.
static int head(struct conn *c) {
    ssize_t got = recv(c->fd, c->head, sizeof c->head - 1, MSG_PEEK | MSG_DONTWAIT);
    if (got == 0) die("closed");
    if (got < 0) return 0;
    c->head[got] = 0;
    char *end = strstr(c->head, "\r\n\r\n");
    if (!end) return 0;
    char *length = strcasestr(c->head, "content-length:");
    if (!length || length > end) {
        fprintf(stderr, "no length: %.200s\n", c->head);
        exit(1);
    }
    if (strncmp(c->head + 9, "20", 2)) {
        if (!failed++) fprintf(stderr, "%.600s\n", c->head);
    }
    c->left = end + 4 - c->head + atol(length + 15);
    return 1;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(void) {
    double sum = 0, elapsed = now() - began;
    qsort(latencies, done, sizeof *latencies, by_value);
    for (long i = 0; i < done; i++) sum += latencies[i];
    printf("{\"requests\": %ld, \"bytes\": %ld, \"seconds\": %.6f, \"failed\": %ld, \"mean_ms\": %.3f, \"p50_ms\": %.3f, \"p95_ms\": %.3f}\n",
           done, bytes, elapsed, failed, sum / done * 1e3, latencies[done / 2] * 1e3, latencies[done * 95 / 100] * 1e3);
}

static void take(struct conn *c) {
    if (c->left < 0 && !head(c)) return;
    while (c->left > 0) {
        ssize_t got = recv(c->fd, NULL, c->left, MSG_TRUNC | MSG_DONTWAIT);
        if (got == 0) die("closed within a reply");
        if (got < 0) return;
        c->left -= got;
        bytes += got;
    }
    latencies[done++] = now() - c->asked;
    open_requests--;
    ask(c);
}

int main(int argc, char **argv) {
    if (argc != 4 && argc != 5) return 2;
    int connections = atoi(argv[2]), poll = epoll_create1(0);
    FILE *file = fopen(argv[3], "r");
    if (!file) die(argv[3]);
    seconds = argc == 5 ? atof(argv[4]) : 0;
    char path[1024];
    requests = malloc(sizeof *requests * MOST);
    latencies = malloc(sizeof *latencies * (MOST + 10000));
    while (count < MOST && fscanf(file, "%1000s", path) == 1)
        if (asprintf(&requests[count++], "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path) < 0) return 1;
    if (!count) die("no path");
    struct conn *all = calloc(connections, sizeof *all);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (int i = 0; i < connections; i++) {
        all[i].fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(all[i].fd, (struct sockaddr *)&to, sizeof to)) die("connect");
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &all[i]};
        epoll_ctl(poll, EPOLL_CTL_ADD, all[i].fd, &event);
    }
    began = now();
    for (int i = 0; i < connections; i++) ask(&all[i]);
    while (open_requests > 0) {
        struct epoll_event events[64];
        int ready = epoll_wait(poll, events, 64, 60000);
        if (ready == 0) {
            fprintf(stderr, "no reply for a minute\n");
            return 1;
        }
        for (int i = 0; i < ready; i++) {
            struct conn *c = events[i].data.ptr;
            if (c->idle) die("closed while idle");
            take(c);
        }
    }
    report();
}
