/** The sample's environment: a Dockerfile, where this machine can build one without a network. */
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

/** Programs that a build needs, with the packages that have them. */
const PROGRAMS = [
  ["buildah", "buildah"],
  ["bwrap", "bubblewrap"],
  ["busybox", "busybox-static"],
] as const;
/** The user namespace of a machine has all user ids. That of a container may have too few for a build. */
const WHOLE_MAP = /^\s*0\s+0\s+4294967295\s*$/;

const DOCKERFILE = `# The contents of the agent's sandbox. A real project begins with an image such as debian:12.
FROM scratch
COPY busybox /bin/busybox
RUN ["/bin/busybox", "--install", "-s", "/bin"]
`;

const find = (program: string): string | undefined =>
  (process.env["PATH"] ?? "")
    .split(":")
    .map((directory) => path.join(directory, program))
    .find((file) => existsSync(file));

/** The reason why this machine builds no Dockerfile. Null if it does. */
const lacking = (): string | null => {
  if (process.geteuid?.() !== 0) return "run the demo as root";
  const missing = PROGRAMS.filter(([program]) => find(program) === undefined);
  if (missing.length > 0) return `install ${missing.map(([, source]) => source).join(", ")}`;
  const hasUids = WHOLE_MAP.test(readFileSync("/proc/self/uid_map", "utf8"));
  return hasUids ? null : "run the demo where all user ids are mapped";
};

/**
 * Adds a Dockerfile to a repository that is not committed yet.
 * @returns the remedy if none can be built here; null if it was added
 */
export const addEnvironment = (repository: string): string | null => {
  const todo = lacking();
  const busybox = find("busybox");
  if (todo !== null || busybox === undefined) return todo;
  const directory = path.join(repository, ".platform");
  mkdirSync(directory, { recursive: true });
  // One static program that can be a shell and all its tools.
  copyFileSync(busybox, path.join(directory, "busybox"));
  writeFileSync(path.join(directory, "Dockerfile"), DOCKERFILE);
  return null;
};
