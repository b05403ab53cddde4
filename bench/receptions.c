// CPU of ways to receive many UDP streams: what the AMPS paper compared for its reception module, and others.
//
// receptions WAY STREAMS SECONDS: a child sends STREAMS streams over the loopback, 15 frames a second of two packets each (307 kbit/s).
// The parent receives them, and prints packets, CPU in percent of a core, and the longest and mean wait of packets as JSON.
//
// Ways: `select` and `polling` as AMPS had them, in rounds of 15 ms (a call for all sockets, or a read of each); `epoll` with recvmmsg as soon
// as packets arrive, which is Millpond's; `epoll-rounds` the same each 15 ms; `one` and `one-rounds` with one socket for all streams.
// The kernel's part of the reception, up to the socket, is charged to the sender here.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SIZE 1280
#define FRAMES 15
#define ROUND_NS 15000000L
#define BATCH 32
#define MOST 4096

static int sockets[MOST], ports[MOST];
static int streams, count;
static long packets;
static double waited, longest, measured_from;
static char buffers[BATCH][2048];
static struct mmsghdr messages[BATCH];
static struct iovec vectors[BATCH];

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void count_packet(const char *packet, double at) {
    double sent;
    memcpy(&sent, packet, sizeof sent);
    if (at < measured_from)
        return;
    packets++;
    waited += at - sent;
    if (at - sent > longest)
        longest = at - sent;
}

// Reads a socket until it is empty, packet by packet.
static void drain(int fd) {
    static char packet[2048];
    while (recv(fd, packet, sizeof packet, MSG_DONTWAIT) > 0)
        count_packet(packet, now());
}

// The same with several packets a call.
static void drain_many(int fd) {
    int got;
    do {
        got = recvmmsg(fd, messages, BATCH, MSG_DONTWAIT, NULL);
        double at = now();
        for (int i = 0; i < got; i++)
            count_packet(buffers[i], at);
    } while (got == BATCH);
}

static void receive(const char *way, double end) {
    int is_select = !strcmp(way, "select"), is_polling = !strcmp(way, "polling");
    int has_rounds = is_select || is_polling || strstr(way, "-rounds") != NULL, has_epoll = !strncmp(way, "epoll", 5);
    int epoll = epoll_create1(0), most = 0;
    for (int i = 0; i < count; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = sockets[i]};
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, sockets[i], &event))
            die("epoll_ctl");
        if (sockets[i] > most)
            most = sockets[i];
    }
    if (is_select && most >= FD_SETSIZE) {
        fprintf(stderr, "select has room for %d descriptors only\n", FD_SETSIZE);
        exit(1);
    }
    static struct epoll_event events[MOST];
    while (now() < end) {
        if (has_rounds) {
            struct timespec pause = {.tv_nsec = ROUND_NS};
            nanosleep(&pause, NULL);
        }
        if (is_select) {
            fd_set ready;
            struct timeval none = {0};
            FD_ZERO(&ready);
            for (int i = 0; i < count; i++)
                FD_SET(sockets[i], &ready);
            if (select(most + 1, &ready, NULL, NULL, &none) < 0)
                die("select");
            for (int i = 0; i < count; i++)
                if (FD_ISSET(sockets[i], &ready))
                    drain(sockets[i]);
        } else if (is_polling) {
            for (int i = 0; i < count; i++)
                drain(sockets[i]);
        } else if (has_epoll || !has_rounds) {
            int ready = epoll_wait(epoll, events, MOST, has_rounds ? 0 : 100);
            for (int i = 0; i < ready; i++)
                drain_many(events[i].data.fd);
        } else {
            drain_many(sockets[0]);
        }
    }
}

// Sends the frames of all streams, evenly spread over the time between two frames, until it is killed.
static void feed(void) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    static char packet[SIZE];
    double period = 1.0 / FRAMES, began = now();
    for (long frame = 0;; frame++) {
        int stream = frame % streams;
        double due = began + (frame / streams) * period + period * stream / streams;
        double early = due - now();
        if (early > 0.0005) {
            struct timespec pause = {.tv_nsec = (long)(early * 1e9)};
            nanosleep(&pause, NULL);
        }
        struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = ports[stream % count], .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        for (int part = 0; part < 2; part++) {
            double at = now();
            memcpy(packet, &at, sizeof at);
            sendto(fd, packet, SIZE, 0, (struct sockaddr *)&to, sizeof to);
        }
    }
}

static double cpu(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv) {
    const char *ways = " select polling epoll epoll-rounds one one-rounds ";
    char name[32];
    if (argc == 4)
        snprintf(name, sizeof name, " %.28s ", argv[1]);
    if (argc != 4 || !strstr(ways, name) || (streams = atoi(argv[2])) < 1 || streams > MOST || atof(argv[3]) <= 0) {
        fprintf(stderr, "usage: receptions WAY STREAMS SECONDS, of%s\n", ways);
        return 2;
    }
    double seconds = atof(argv[3]);
    count = strncmp(argv[1], "one", 3) ? streams : 1;
    for (int i = 0; i < count; i++) {
        struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t length = sizeof own;
        int room = count == 1 ? 8 << 20 : 256 << 10;
        if ((sockets[i] = socket(AF_INET, SOCK_DGRAM, 0)) < 0 || bind(sockets[i], (struct sockaddr *)&own, sizeof own))
            die("socket");
        if (setsockopt(sockets[i], SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room))
            setsockopt(sockets[i], SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
        getsockname(sockets[i], (struct sockaddr *)&own, &length);
        ports[i] = own.sin_port;
    }
    for (int i = 0; i < BATCH; i++) {
        vectors[i] = (struct iovec){buffers[i], sizeof buffers[i]};
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &vectors[i], .msg_iovlen = 1};
    }
    pid_t child = fork();
    if (!child)
        feed();
    measured_from = now() + 1;
    receive(argv[1], measured_from);
    double before = cpu(), from = now();
    receive(argv[1], measured_from + seconds);
    double spent = cpu() - before, took = now() - from;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    printf("{\"way\": \"%s\", \"streams\": %d, \"packets\": %ld, \"expected\": %.0f, \"cpu\": %.3f, \"mean_ms\": %.3f, \"longest_ms\": %.3f}\n", argv[1], streams, packets,
           streams * 2.0 * FRAMES * seconds, 100 * spent / took, packets ? 1000 * waited / packets : 0, 1000 * longest);
    return 0;
}
