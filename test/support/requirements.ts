/** The programs that tests need. On a machine without them, the tests are skipped by name. CI has all of them. */
import { existsSync } from "node:fs";
import path from "node:path";

/** Debian's directory of administrators' programs, which is not on every PATH. */
const ALSO = ["/usr/sbin"];

const program = (name: string): string | undefined =>
  [...(process.env["PATH"] ?? "").split(path.delimiter), ...ALSO]
    .map((directory) => path.join(directory, name))
    .find((file) => existsSync(file));

/** `local` sandboxes run on Linux with bubblewrap. The weaker form without it has its own tests. */
export const sandboxesStartHere = process.platform === "linux" && program("bwrap") !== undefined;

/** The need that this machine does not meet of the fake cluster, whose Pods are real processes. */
export const lacksCluster = !sandboxesStartHere
  ? "(needs bubblewrap)"
  : process.geteuid?.() === 0
    ? null
    : "(needs root, as a node does)";

/** nginx, as an upstream behind the proxy. */
export const nginxProgram = program("nginx");

/** PgBouncer, as a pooler before the database. */
export const pgbouncerProgram = program("pgbouncer");

/** Prometheus and its tool, for the metrics and the alerts. */
export const prometheusProgram = program("prometheus");
export const promtoolProgram = program("promtool");

/** Helm, for the chart: the one on the PATH, or the one that `.ci/helm` has fetched. */
const fetchedHelm = path.resolve(import.meta.dirname, "../../node_modules/.cache/helm/helm");
export const helmProgram = program("helm") ?? (existsSync(fetchedHelm) ? fetchedHelm : undefined);

/** OpenSSH on both ends: the person's client, and the server that runs in her sandbox. */
export const sshRunsHere =
  sandboxesStartHere && ["ssh", "ssh-keygen", "scp", "sshd"].every((name) => program(name) !== undefined);

/** rsync on both ends: `local` sandboxes have the machine's programs. Only deep tests use it, so `.ci/run` does not install it. */
export const rsyncRunsHere = sshRunsHere && program("rsync") !== undefined;

/** What the commands of docs/use need beside the service. */
export const documentsRunHere =
  sandboxesStartHere && ["bash", "curl", "git", "jq", "openssl"].every((name) => program(name) !== undefined);
