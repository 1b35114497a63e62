/** The sample's environment: a Dockerfile, where this machine can build one without a network. */
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { firstBlockUid } from "../src/builder/buildah/layer-stores.ts";
import { findBuildTools } from "../src/builder/buildah/requirements.ts";

/** One static program that can be a shell and all its tools. */
const BUSYBOX = ["/bin/busybox", "/usr/bin/busybox"].find((file) => existsSync(file));

const DOCKERFILE = `# What the agent's sandbox contains. A real project begins with an image such as debian:12.
FROM scratch
COPY busybox /bin/busybox
RUN ["/bin/busybox", "--install", "-s", "/bin"]
`;

/**
 * Adds a Dockerfile to a repository that is not committed yet.
 * @returns what this machine lacks for that; null if it lacks nothing
 */
export const addEnvironment = (repository: string): string | null => {
  const found = findBuildTools(process.env["PATH"] ?? "", firstBlockUid(""));
  if ("remedy" in found) return found.remedy;
  if (BUSYBOX === undefined) return "install busybox-static, so that the image needs no registry";
  const directory = path.join(repository, ".platform");
  mkdirSync(directory, { recursive: true });
  copyFileSync(BUSYBOX, path.join(directory, "busybox"));
  writeFileSync(path.join(directory, "Dockerfile"), DOCKERFILE);
  return null;
};
