/* Tests ngx_tollbar_conn_gone on real processes, and prints each fault. */

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../common/ngx_tollbar_conn.h"

static int wrong;

static void expect(const char *what, int found, int expected)
{
    if (found != expected) {
        printf("%s: %d\n", what, found);
        wrong = 1;
    }
}

int main(void)
{
    ngx_tollbar_conn_process_t self = ngx_tollbar_conn_self(), other = self, child;
    int pipes[2];
    siginfo_t ended;
    pid_t pid;

    expect("it knows its number", self.number == (uint32_t) getpid(), 1);
    expect("it knows its start", self.start != 0, 1);
    expect("it is there", ngx_tollbar_conn_gone(self, 0) || ngx_tollbar_conn_gone(self, 1), 0);

    /* An earlier process with the same number. */
    other.start ^= 1;
    expect("at a glance nobody sees that", ngx_tollbar_conn_gone(other, 0), 0);
    expect("one that had the number before is gone", ngx_tollbar_conn_gone(other, 1), 1);
    other.start = 0;
    expect("of one whose start is not known the number is all", ngx_tollbar_conn_gone(other, 1), 0);
    other.number = 1;
    expect("one that belongs to somebody else is there", ngx_tollbar_conn_gone(other, 1), 0);

    if (pipe(pipes) != 0) {
        return 2;
    }
    pid = fork();
    if (pid == 0) {
        child = ngx_tollbar_conn_self();
        if (write(pipes[1], &child, sizeof(child)) != sizeof(child)) {
            _exit(1);
        }
        pause();
        _exit(0);
    }
    if (read(pipes[0], &child, sizeof(child)) != sizeof(child)) {
        return 2;
    }
    expect("a child is there", ngx_tollbar_conn_gone(child, 1), 0);
    kill(pid, SIGSTOP);
    waitpid(pid, NULL, WUNTRACED);
    expect("also when it is stopped", ngx_tollbar_conn_gone(child, 1), 0);
    kill(pid, SIGKILL);
    waitid(P_PID, (id_t) pid, &ended, WEXITED | WNOWAIT);
    expect("one that nobody has asked after yet is gone", ngx_tollbar_conn_gone(child, 1), 1);
    waitpid(pid, NULL, 0);
    expect("and afterwards so that a glance is enough", ngx_tollbar_conn_gone(child, 0), 1);
    return wrong;
}
