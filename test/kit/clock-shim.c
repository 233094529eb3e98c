/*
 * A process is started with this library preloaded. A shared file has three numbers of microseconds. The library shifts
 * the process's time of day by the first number, takes the second number out of its monotonic clock, and shifts what
 * /proc/uptime says by the third number. It changes nothing else.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long long *offsets;
static int (*real_clock_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("BATON_CLOCK_OFFSET");
  int file = path ? open(path, O_RDONLY) : -1;
  void *page = file < 0 ? MAP_FAILED : mmap(0, 3 * sizeof(long long), PROT_READ, MAP_SHARED, file, 0);
  real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
  if (page != MAP_FAILED) offsets = page;
}

int clock_gettime(clockid_t id, struct timespec *time) {
  if (!real_clock_gettime) real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
  int result = real_clock_gettime(id, time);
  if (result == 0 && offsets) {
    long long shift = 0;
    if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE) shift = offsets[0];
    if (id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_COARSE) shift = -offsets[1];
    // Round towards minus infinity, because the nanoseconds in a timespec must not be negative.
    long long micros = shift % 1000000;
    if (micros < 0) micros += 1000000;
    long long nanos = time->tv_nsec + micros * 1000;
    time->tv_sec += (shift - micros) / 1000000 + nanos / 1000000000;
    time->tv_nsec = nanos % 1000000000;
  }
  return result;
}

int gettimeofday(struct timeval *time, void *zone) {
  struct timespec now;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *result) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (result) *result = now.tv_sec;
  return now.tv_sec;
}

static int open_uptime(void) {
  struct timespec now;
  int file = memfd_create("uptime", MFD_CLOEXEC);
  clock_gettime(CLOCK_BOOTTIME, &now);
  if (file < 0) return file;
  dprintf(file, "%.2f 0.00\n", now.tv_sec + now.tv_nsec / 1e9 + offsets[2] / 1e6);
  lseek(file, 0, SEEK_SET);
  return file;
}

#define OPEN(name)                                                                     \
  int name(const char *path, int flags, ...) {                                         \
    if (offsets && offsets[2] && strcmp(path, "/proc/uptime") == 0) return open_uptime(); \
    va_list rest;                                                                      \
    va_start(rest, flags);                                                             \
    int mode = va_arg(rest, int);                                                      \
    va_end(rest);                                                                      \
    return syscall(SYS_openat, AT_FDCWD, path, flags, mode);                           \
  }
OPEN(open)
OPEN(open64)
