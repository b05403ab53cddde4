// Many HTTP viewers of running streams: reads responses, and tells how late fragments are.
//
// viewers ADDRESS PORT VIEWERS STREAMS SECONDS SETTLE LATE_MS PATH: viewer n asks for PATH with its %d replaced by n modulo STREAMS, by
// HTTP/1.0, so that bodies have no framing. A body that begins with `ftyp` is fragmented MP4 with one track: the end of each fragment should
// come as long after the first as its decode time says; the earliest one is in time. Prints viewers, bytes, fragments, late ones and the
// greatest lateness as JSON, of what came after SETTLE seconds.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MOST_HEAD 65536
#define MOST_OFFSETS 20000

struct viewer {
    int fd;
    int in_head;
    int in_body; // the first box is known
    char *box; // of the box that is read: its head, and all of moov and moof
    size_t have;
    uint64_t left; // of a box whose bytes don't matter
    uint32_t timescale;
    double arrived; // end of the last fragment
    float *offsets; // of each fragment: arrival less decode time
    int count;
    long bytes;
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void die(const char *what) {
    perror(what);
    exit(1);
}

static uint32_t be32(const char *p) {
    uint32_t v;
    memcpy(&v, p, 4);
    return ntohl(v);
}

static uint64_t be64(const char *p) { return (uint64_t)be32(p) << 32 | be32(p + 4); }

static const char *find(const struct viewer *v, const char *name) {
    const char *at = memmem(v->box, v->have, name, 4);
    return at ? at + 4 : NULL;
}

// Reads a whole moov or moof.
static void known(struct viewer *v, double began, double settle) {
    if (!memcmp(v->box + 4, "moov", 4)) {
        const char *mdhd = find(v, "mdhd");
        if (mdhd) v->timescale = be32(mdhd + (mdhd[0] ? 20 : 12));
        return;
    }
    const char *tfdt = find(v, "tfdt");
    if (!tfdt || !v->timescale) return;
    double time = (tfdt[0] ? be64(tfdt + 4) : be32(tfdt + 4)) / (double)v->timescale;
    // It begins where the last one ended.
    if (v->arrived > began + settle && v->count < MOST_OFFSETS) v->offsets[v->count++] = v->arrived - began - time;
}

static void take(struct viewer *v, const char *data, size_t length, double at, double began, double settle) {
    while (length) {
        if (v->left) {
            size_t count = length < v->left ? length : v->left;
            v->left -= count, data += count, length -= count;
            if (!v->left) v->arrived = at;
            continue;
        }
        if (v->have < 8) {
            size_t count = length < 8 - v->have ? length : 8 - v->have;
            memcpy(v->box + v->have, data, count);
            v->have += count, data += count, length -= count;
            if (v->have < 8) return;
        }
        // Anything but fragmented MP4 is only counted.
        if (!v->in_body++ && memcmp(v->box + 4, "ftyp", 4)) {
            v->left = UINT64_MAX;
            continue;
        }
        v->in_body = 1;
        uint64_t size = be32(v->box);
        int matters = !memcmp(v->box + 4, "moov", 4) || !memcmp(v->box + 4, "moof", 4);
        if (size < 8 || (matters && size > MOST_HEAD)) {
            fprintf(stderr, "a box of %lu bytes: %.4s\n", (unsigned long)size, v->box + 4);
            exit(1);
        }
        if (!matters) {
            v->left = size - 8, v->have = 0;
            continue;
        }
        size_t count = length < size - v->have ? length : size - v->have;
        memcpy(v->box + v->have, data, count);
        v->have += count, data += count, length -= count;
        if (v->have == size) known(v, began, settle), v->have = 0;
    }
}

int main(int argc, char **argv) {
    if (argc != 9) return 2;
    int viewers = atoi(argv[3]), streams = atoi(argv[4]);
    double seconds = atof(argv[5]), settle = atof(argv[6]), late_ms = atof(argv[7]);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[2]))};
    inet_pton(AF_INET, argv[1], &to.sin_addr);
    struct viewer *all = calloc(viewers, sizeof *all);
    int poll = epoll_create1(0);
    double began = now();
    static char buffer[1 << 18];
    int open = 0, ended = 0;
    long refused = 0;
    while (now() - began < seconds + settle) {
        // Viewers come within half of the time to settle.
        int due = (int)((now() - began) / (settle / 2) * viewers);
        for (; open < viewers && open < due; open++) {
            struct viewer *v = &all[open];
            v->fd = socket(AF_INET, SOCK_STREAM, 0);
            v->in_head = 1, v->box = malloc(MOST_HEAD), v->offsets = malloc(MOST_OFFSETS * sizeof(float));
            if (connect(v->fd, (struct sockaddr *)&to, sizeof to) < 0) die("connect");
            char path[256], request[512];
            snprintf(path, sizeof path, argv[8], open % streams);
            int length = snprintf(request, sizeof request, "GET %s HTTP/1.0\r\nHost: %s\r\n\r\n", path, argv[1]);
            if (send(v->fd, request, length, MSG_NOSIGNAL) != length) die("send");
            fcntl(v->fd, F_SETFL, O_NONBLOCK);
            struct epoll_event event = {.events = EPOLLIN, .data.ptr = v};
            epoll_ctl(poll, EPOLL_CTL_ADD, v->fd, &event);
        }
        struct epoll_event events[256];
        int ready = epoll_wait(poll, events, 256, 5);
        for (int n = 0; n < ready; n++) {
            struct viewer *v = events[n].data.ptr;
            ssize_t got = recv(v->fd, buffer, sizeof buffer, 0);
            if (got <= 0) {
                close(v->fd), ended++;
                continue;
            }
            double at = now();
            if (at - began > settle) v->bytes += got;
            char *body = buffer;
            if (v->in_head) {
                char *end = memmem(buffer, got, "\r\n\r\n", 4);
                if (!end) continue;
                if (memcmp(buffer + 9, "200", 3)) refused++;
                v->in_head = 0, body = end + 4;
            }
            take(v, body, buffer + got - body, at, began, settle);
        }
    }
    long bytes = 0, fragments = 0, late = 0, late_viewers = 0, silent = 0;
    double most = 0;
    for (int n = 0; n < viewers; n++) {
        struct viewer *v = &all[n];
        bytes += v->bytes, fragments += v->count, silent += v->bytes == 0;
        float best = 1e9;
        for (int i = 0; i < v->count; i++) best = v->offsets[i] < best ? v->offsets[i] : best;
        long of = 0;
        for (int i = 0; i < v->count; i++) {
            double by = (v->offsets[i] - best) * 1000;
            most = by > most ? by : most;
            of += by > late_ms;
        }
        late += of, late_viewers += of > 0;
    }
    printf("{\"viewers\": %d, \"refused\": %ld, \"ended\": %d, \"silent\": %ld, \"seconds\": %f, \"bytes\": %ld, \"fragments\": %ld, \"late\": %ld, "
           "\"late-viewers\": %ld, \"most-late-ms\": %.1f}\n",
           viewers, refused, ended, silent, seconds, bytes, fragments, late, late_viewers, most);
    return 0;
}
