/* Preloaded into a program under test: a clock that can be set, a kernel that can be another one, and calls that fail.
 *
 *   TORTURE_CLOCK=FILE       two numbers that may change while the program runs: nanoseconds to add to its clock,
 *                            and the errno with which everything fails that is written to files, or 0
 *   TORTURE_KERNEL=NUMBER    the time namespace that the program sees, so that it takes itself for another boot
 *   TORTURE_FAULT=KIND:N:HOW the N-th write, fsync, send or connect fails with that errno, or the process dies (0)
 *   TORTURE_MET=FILE         made when that call is met
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *offset; /* and, after it, the errno */
static const char *kernel, *met;
static char kind[16];
static long wanted, how;
static volatile long seen;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("TORTURE_CLOCK"), *fault = getenv("TORTURE_FAULT");
  int fd = path ? open(path, O_RDONLY) : -1;
  if (fd >= 0) {
    void *mapped = mmap(NULL, 2 * sizeof *offset, PROT_READ, MAP_SHARED, fd, 0);
    if (mapped != MAP_FAILED) offset = mapped;
    close(fd);
  }
  kernel = getenv("TORTURE_KERNEL");
  met = getenv("TORTURE_MET");
  if (fault && sscanf(fault, "%15[a-z]:%ld:%ld", kind, &wanted, &how) != 3) abort();
}

/* Whether this call of that kind is the one that fails. */
static int fails(const char *which) {
  if (!wanted || strcmp(which, kind) || __sync_add_and_fetch(&seen, 1) != wanted) return 0;
  if (met) close(syscall(SYS_openat, AT_FDCWD, met, O_CREAT | O_WRONLY, 0644));
  if (!how) syscall(SYS_kill, getpid(), SIGKILL);
  errno = how;
  return 1;
}

/* Sockets are sent to, files are written; pipes and terminals are nobody's promise. */
static int fails_on(int fd) {
  struct stat about;
  if (fd <= 2 || (!wanted && !(offset && offset[1])) || fstat(fd, &about)) return 0;
  if (S_ISSOCK(about.st_mode)) return fails("send");
  if (!S_ISREG(about.st_mode)) return 0;
  if (offset && offset[1]) {
    errno = offset[1];
    return 1;
  }
  return fails("write");
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define WRAP(type, name, args, call, failing) \
  type name args {                            \
    static __typeof__(&name) real;            \
    if (!real) real = REAL(name);             \
    return (failing) ? -1 : real call;        \
  }

WRAP(ssize_t, write, (int fd, const void *data, size_t size), (fd, data, size), fails_on(fd))
WRAP(ssize_t, pwrite, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at), fails_on(fd))
WRAP(ssize_t, pwrite64, (int fd, const void *data, size_t size, off64_t at), (fd, data, size, at), fails_on(fd))
WRAP(ssize_t, writev, (int fd, const struct iovec *parts, int count), (fd, parts, count), fails_on(fd))
WRAP(int, ftruncate, (int fd, off_t size), (fd, size), fails_on(fd))
WRAP(int, ftruncate64, (int fd, off64_t size), (fd, size), fails_on(fd))
WRAP(int, fsync, (int fd), (fd), fails("fsync"))
WRAP(int, fdatasync, (int fd), (fd), fails("fsync"))
WRAP(ssize_t, send, (int fd, const void *data, size_t size, int flags), (fd, data, size, flags), fails("send"))
WRAP(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags), fails("send"))
WRAP(int, connect, (int fd, __CONST_SOCKADDR_ARG to, socklen_t size), (fd, to, size), fails("connect"))

int clock_gettime(clockid_t which, struct timespec *at) {
  static __typeof__(&clock_gettime) real;
  if (!real) real = REAL(clock_gettime);
  int answer = real(which, at);
  if (!answer && which == CLOCK_REALTIME && offset) {
    int64_t nanos = at->tv_nsec + *offset % 1000000000;
    at->tv_sec += *offset / 1000000000 + (nanos >= 1000000000) - (nanos < 0);
    at->tv_nsec = (nanos + 1000000000) % 1000000000;
  }
  return answer;
}

/* PostgreSQL asks this way. */
int gettimeofday(struct timeval *restrict at, void *restrict zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return 0;
}

ssize_t readlink(const char *path, char *into, size_t size) {
  static __typeof__(&readlink) real;
  if (!real) real = REAL(readlink);
  if (kernel && !strcmp(path, "/proc/self/ns/time")) {
    int length = snprintf(into, size, "time:[%s]", kernel);
    return length < (int)size ? length : (ssize_t)size;
  }
  return real(path, into, size);
}
