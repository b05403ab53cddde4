// A long way between two network devices: each packet that one sends reaches the other so many milliseconds later.
// Stands in for netem, which not every kernel has. The devices are made here, and are gone with the process.
//
// far NAME NAME MILLISECONDS
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

// More than a quarter of a second of 200 Mbit/s; the packets of an Ethernet.
#define PLACES 8192
#define LENGTH 1536

// What is on its way, in a ring.
struct way {
    int from, to;
    unsigned first, count;
    struct packet {
        int64_t due;
        int length;
        char bytes[LENGTH];
    } *packets;
};

static void die(const char *what) {
    perror(what);
    exit(1);
}

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ll + time.tv_nsec;
}

static int device(const char *name) {
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    if (fd < 0) die("/dev/net/tun");
    strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    if (ioctl(fd, TUNSETIFF, &request) < 0) die(name);
    return fd;
}

// Takes what was sent, while there is a place for it.
static void take(struct way *way, int64_t delay) {
    while (way->count < PLACES) {
        struct packet *packet = &way->packets[(way->first + way->count) % PLACES];
        packet->length = read(way->from, packet->bytes, LENGTH);
        if (packet->length <= 0) return;
        packet->due = now() + delay;
        way->count++;
    }
}

// Gives what is due. What the other side doesn't take is lost, as on any way.
static void give(struct way *way) {
    while (way->count > 0 && way->packets[way->first].due <= now()) {
        struct packet *packet = &way->packets[way->first];
        if (write(way->to, packet->bytes, packet->length) < 0 && errno != EAGAIN && errno != EIO) die("write");
        way->first = (way->first + 1) % PLACES;
        way->count--;
    }
}

int main(int count, char **arguments) {
    if (count != 4) return 2;
    int one = device(arguments[1]), other = device(arguments[2]);
    int64_t delay = atof(arguments[3]) * 1e6;
    struct way ways[2] = {{.from = one, .to = other}, {.from = other, .to = one}};
    for (int i = 0; i < 2; i++)
        if (!(ways[i].packets = calloc(PLACES, sizeof *ways[i].packets))) die("calloc");
    for (;;) {
        int64_t next = INT64_MAX;
        struct pollfd ready[2];
        for (int i = 0; i < 2; i++) {
            struct way *way = &ways[i];
            take(way, delay);
            give(way);
            if (way->count > 0 && way->packets[way->first].due < next) next = way->packets[way->first].due;
            ready[i] = (struct pollfd){.fd = way->from, .events = way->count < PLACES ? POLLIN : 0};
        }
        int64_t left = next - now();
        struct timespec wait = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
        if (left > 0) ppoll(ready, 2, next == INT64_MAX ? NULL : &wait, NULL);
    }
}
