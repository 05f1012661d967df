/* A disk that fails on purpose.
 *
 * Loaded before the C library (LD_PRELOAD), it numbers everything that a process does to the files
 * under one directory, together with the marks that the test sets, writes it all to a trace, and at
 * one chosen step does not do what it was asked: the process dies, or the call fails.
 *
 * The trace keeps every byte written and every fsync, so that a loss of power can be replayed from
 * it (disk.py): what was not synced may or may not have reached the disk.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { FILES = 1024 };
enum fault { NONE, KILL, IO_ERROR, FULL, SHORT, TORN, PAUSE, STAYS_FULL, STAYS_BROKEN };

struct record {
    uint64_t step, offset, size;
    int64_t result;
    uint32_t kind, path_length;
};

static char watched[PATH_MAX];
static char *paths[FILES];
static int trace = -1;
static atomic_long step;
static long chosen = -1;
static int fault = NONE;

/* Begin to number, and to write to the trace, in this process. */
void disk_watch(const char *directory, const char *trace_path) {
    strncpy(watched, directory, sizeof watched - 1);
    trace = syscall(SYS_openat, AT_FDCWD, trace_path,
                    O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    atomic_store(&step, 0);
    chosen = -1;
}

/* Stop to number: from here on this is a disk like any other. */
void disk_unwatch(void) {
    if (trace >= 0) syscall(SYS_close, trace);
    trace = -1;
    chosen = -1;
}

void disk_fault(long at, int what) {
    chosen = at;
    fault = what;
}

long disk_steps(void) { return atomic_load(&step); }

static void write_trace(uint32_t kind, long at, const char *path, int64_t result, uint64_t offset,
                        uint64_t size, const void *data) {
    struct record record = {at, offset, data ? size : 0, result, kind, strlen(path)};
    struct iovec parts[3] = {{&record, sizeof record},
                             {(void *)path, record.path_length},
                             {(void *)data, data ? size : 0}};
    if (!data) record.offset = kind == 't' ? size : offset;
    syscall(SYS_writev, trace, parts, data ? 3 : 2);
}

static void die(void) {
    syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
    for (;;) syscall(SYS_pause);
}

/* The fault to commit at this step, after dying of it if it is that kind. */
static int next_step(long *at) {
    *at = atomic_fetch_add(&step, 1);
    if (chosen < 0 || *at < chosen) return NONE;
    if (*at > chosen) return fault >= STAYS_FULL ? fault : NONE;
    if (fault == KILL) die();
    if (fault != PAUSE) return fault;
    syscall(SYS_kill, syscall(SYS_getpid), SIGSTOP); /* until somebody says SIGCONT */
    return NONE;
}

/* A step of the test's own: something that happened above the disk. */
void disk_mark(const char *text) {
    long at;
    if (trace < 0) return;
    next_step(&at);
    write_trace('m', at, text, 0, 0, 0, NULL);
}

static int is_watched(const char *path) {
    size_t length = strlen(watched);
    return trace >= 0 && length && !strncmp(path, watched, length)
           && (path[length] == '/' || path[length] == 0); /* the directory itself too */
}

static const char *watched_file(int fd) {
    return trace >= 0 && fd >= 0 && fd < FILES ? paths[fd] : NULL;
}

static int shared_memory(const char *path) {
    size_t length = strlen(path);
    return length > 4 && !strcmp(path + length - 4, "-shm");
}

static int opened(const char *path, int flags, mode_t mode) {
    struct stat before;
    long at;
    int created, emptied, fd, what = NONE, noted = 0;
    if (!is_watched(path)) return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    created = (flags & O_CREAT) && syscall(SYS_newfstatat, AT_FDCWD, path, &before, 0) != 0;
    emptied = !created && (flags & O_TRUNC);
    if (created || emptied) {
        what = next_step(&at);
        noted = 1;
        if (what == STAYS_FULL || what == FULL) { errno = ENOSPC; return -1; }
        if (what != NONE && what != SHORT && what != TORN) { errno = EIO; return -1; }
    }
    fd = syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (fd >= 0 && fd < FILES) paths[fd] = strdup(path);
    if (fd >= 0 && noted)
        write_trace(created ? 'c' : 't', at, path, 0, 0, 0, NULL);
    return fd;
}

#define OPEN(name)                                                  \
    int name(const char *path, int flags, ...) {                    \
        va_list rest;                                               \
        mode_t mode;                                                \
        va_start(rest, flags);                                      \
        mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, int) : 0; \
        va_end(rest);                                               \
        return opened(path, flags, mode);                           \
    }
OPEN(open)
OPEN(open64)

int close(int fd) {
    if (fd >= 0 && fd < FILES) paths[fd] = NULL;
    return syscall(SYS_close, fd);
}

static ssize_t written(int fd, const void *data, size_t size, off_t offset, int at_offset) {
    const char *path = watched_file(fd);
    ssize_t result;
    size_t wanted = size;
    long at;
    int what;
    if (!path)
        return at_offset ? syscall(SYS_pwrite64, fd, data, size, offset)
                         : syscall(SYS_write, fd, data, size);
    what = next_step(&at);
    if (!at_offset) offset = syscall(SYS_lseek, fd, 0, SEEK_CUR);
    if (what == IO_ERROR || what == STAYS_BROKEN) { errno = EIO; return -1; }
    if (what == FULL || what == STAYS_FULL) { errno = ENOSPC; return -1; }
    if (what == SHORT || what == TORN) wanted = size / 2;
    result = at_offset ? syscall(SYS_pwrite64, fd, data, wanted, offset)
                       : syscall(SYS_write, fd, data, wanted);
    if (result > 0 && !shared_memory(path))
        write_trace('w', at, path, result, offset, result, data);
    else
        write_trace('h', at, path, result, 0, 0, NULL);
    if (what == TORN) die();
    return result;
}

ssize_t write(int fd, const void *data, size_t size) { return written(fd, data, size, 0, 0); }
ssize_t pwrite(int fd, const void *data, size_t size, off_t o) { return written(fd, data, size, o, 1); }
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t o) { return written(fd, data, size, o, 1); }

/* Nothing is really synced: what would survive is computed from the trace. */
static int synced(int fd, int number) {
    const char *path = watched_file(fd);
    long at;
    int what;
    if (!path) return syscall(number, fd);
    what = next_step(&at);
    if (what != NONE && what != STAYS_FULL && what != TORN) {
        write_trace('s', at, path, -1, 0, 0, NULL);
        errno = EIO;
        return -1;
    }
    if (what == TORN) die();
    write_trace('s', at, path, 0, 0, 0, NULL);
    return 0;
}

int fsync(int fd) { return synced(fd, SYS_fsync); }
int fdatasync(int fd) { return synced(fd, SYS_fdatasync); }

static int truncated(int fd, off_t size) {
    const char *path = watched_file(fd);
    long at;
    int what;
    if (!path) return syscall(SYS_ftruncate, fd, size);
    what = next_step(&at);
    if (what == TORN) die();
    if (what != NONE && what != SHORT) { errno = EIO; return -1; }
    if (syscall(SYS_ftruncate, fd, size)) return -1;
    write_trace(shared_memory(path) ? 'h' : 't', at, path, 0, 0, size, NULL);
    return 0;
}

int ftruncate(int fd, off_t size) { return truncated(fd, size); }
int ftruncate64(int fd, off64_t size) { return truncated(fd, size); }

int unlink(const char *path) {
    long at;
    int what;
    if (!is_watched(path)) return syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    what = next_step(&at);
    if (what == TORN) die();
    if (what == IO_ERROR || what == STAYS_BROKEN) { errno = EIO; return -1; }
    if (syscall(SYS_unlinkat, AT_FDCWD, path, 0)) return -1;
    write_trace('u', at, path, 0, 0, 0, NULL);
    return 0;
}

/* A second name, or another one: it follows the old one as the record's data. */
static int named(uint32_t kind, int number, const char *from, const char *to) {
    long at;
    int what;
    if (is_watched(to)) {
        what = next_step(&at);
        if (what == TORN) die();
        if (what == FULL || what == STAYS_FULL) { errno = ENOSPC; return -1; }
        if (what != NONE && what != SHORT) { errno = EIO; return -1; }
    }
    if (syscall(number, AT_FDCWD, from, AT_FDCWD, to, 0)) return -1;
    if (is_watched(to)) write_trace(kind, at, from, 0, 0, strlen(to), to);
    return 0;
}

int rename(const char *from, const char *to) { return named('r', SYS_renameat2, from, to); }
int link(const char *from, const char *to) { return named('l', SYS_linkat, from, to); }
