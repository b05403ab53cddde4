// CPU of rounds of transmission: what the AMPS paper compared for its transmission module, and the rounds of Millpond.
//
// rounds WAY STREAMS SECONDS: sends STREAMS streams of V10 (10 frames a second, a packet of 156 bytes each) over the loopback to one socket, which
// discards them. Prints packets, CPU in percent of a core, and how long packets left before or behind their time, as JSON.
//
// Ways: `rounds`: every 15 ms each stream is visited, its schedule for the next 15 ms is computed, and what is due leaves. `microrounds`: every
// 15 ms half of the streams are visited, with the next 33 ms. `due`: every 5 ms the streams with a frame due are visited, and no others.
// A stream's state has a page, which a visit reads for its schedule: pipes, times of frames, and addresses, as a server has them.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SIZE 156
#define FRAMES 10
#define MOST 20000
#define TIMES 64

// Frames of a stream that were loaded: their times, as a pipe holds them.
struct stream {
    double times[TIMES];
    char rest[4096 - TIMES * sizeof(double)];
};

static struct stream *streams;
static double *next_due;
static int count, fd;
static struct sockaddr_in to;
static long packets, visits;
static double worst;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

// Computes which frames of a stream are due before a time, and sends them.
static void visit(int number, double at, double until) {
    struct stream *stream = &streams[number];
    visits++;
    int due = 0;
    // Times in order would be found sooner; the paper computes the schedule of each stream in each round.
    for (int i = 0; i < TIMES; i++)
        if (stream->times[i] < until)
            due++;
    while (due-- > 0) {
        static char packet[SIZE];
        int first = 0;
        for (int i = 1; i < TIMES; i++)
            if (stream->times[i] < stream->times[first])
                first = i;
        double off = at - stream->times[first];
        if (off < 0)
            off = -off;
        if (off > worst)
            worst = off;
        memcpy(packet, &stream->rest[first], sizeof(double));
        sendto(fd, packet, SIZE, MSG_DONTWAIT, (struct sockaddr *)&to, sizeof to);
        packets++;
        stream->times[first] += (double)TIMES / FRAMES;
        next_due[number] = stream->times[first] - (TIMES - 1.0) / FRAMES;
    }
}

static void play(const char *way, double end) {
    int is_micro = !strcmp(way, "microrounds"), is_due = !strcmp(way, "due");
    double length = is_due ? 0.005 : 0.015, ahead = is_micro ? 0.033 : length, wake = now();
    for (long round = 0; now() < end; round++) {
        double at = now();
        for (int i = 0; i < count; i++) {
            if (is_micro && i % 2 != round % 2)
                continue;
            // A list of times tells which streams are due, without their state.
            if (is_due && next_due[i] >= at)
                continue;
            visit(i, at, is_due ? at : at + ahead);
        }
        wake += length;
        double pause = wake - now();
        if (pause > 0) {
            struct timespec t = {.tv_nsec = (long)(pause * 1e9)};
            nanosleep(&t, NULL);
        } else {
            wake = now();
        }
    }
}

static double cpu(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv) {
    char name[32];
    if (argc == 4)
        snprintf(name, sizeof name, " %.28s ", argv[1]);
    if (argc != 4 || !strstr(" rounds microrounds due ", name) || (count = atoi(argv[2])) < 1 || count > MOST || atof(argv[3]) <= 0) {
        fprintf(stderr, "usage: rounds WAY STREAMS SECONDS, of rounds, microrounds, due\n");
        return 2;
    }
    double seconds = atof(argv[3]);
    int sink = socket(AF_INET, SOCK_DGRAM, 0);
    socklen_t length = sizeof to;
    to = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (sink < 0 || bind(sink, (struct sockaddr *)&to, sizeof to) || getsockname(sink, (struct sockaddr *)&to, &length)) {
        perror("socket");
        return 1;
    }
    fd = socket(AF_INET, SOCK_DGRAM, 0);
    streams = calloc(count, sizeof *streams);
    next_due = calloc(count, sizeof *next_due);
    if (!streams || !next_due) {
        perror("calloc");
        return 1;
    }
    double began = now();
    for (int i = 0; i < count; i++) {
        for (int frame = 0; frame < TIMES; frame++)
            streams[i].times[frame] = began + 0.1 + (double)i / count / FRAMES + (double)frame / FRAMES;
        next_due[i] = streams[i].times[0];
    }
    play(argv[1], began + 1);
    packets = visits = 0;
    worst = 0;
    double before = cpu(), from = now();
    play(argv[1], from + seconds);
    printf("{\"way\": \"%s\", \"streams\": %d, \"packets\": %ld, \"expected\": %.0f, \"visits\": %ld, \"cpu\": %.3f, \"off_ms\": %.3f}\n", argv[1], count, packets,
           (double)count * FRAMES * seconds, visits, 100 * (cpu() - before) / (now() - from), 1000 * worst);
    return 0;
}
