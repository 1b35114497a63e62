/**
 * The first phase of a build, in its sandbox: unpacks the context from standard input and runs buildah. It ends with
 * buildah's exit code, and reports the image's id if buildah succeeded.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, readFileSync } from "node:fs";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { readRequest, report, SECRETS } from "./reports.ts";

const CONTEXT = "/build/scratch/context";
const IMAGE_ID = "/build/scratch/image-id";
/** How far the output may be ahead of the service. */
const AHEAD_BYTES_MAX = 4 * 1024 * 1024;
/** Milliseconds for the last output after buildah's end. */
const LAST_OUTPUT_MS = 2000;

const { dockerfile, target, args, secrets, pull } = readRequest();
report("up");

const unpacking = spawnSync("tar", ["--extract", "--file=-", `--directory=${CONTEXT}`], {
  stdio: ["inherit", "ignore", "inherit"],
});

if (unpacking.status === 0) {
  report("context");
  const command = [
    "--storage-driver",
    "overlay",
    "--registries-conf",
    "/etc/containers/registries.conf",
    "build",
    // The other format drops SHELL, HEALTHCHECK and ONBUILD.
    "--format",
    "docker",
    "--signature-policy",
    "/etc/containers/policy.json",
    "--layers",
    "--force-rm",
    `--pull=${pull === "newer"}`,
    "--network",
    "host",
    "--iidfile",
    IMAGE_ID,
    "--file",
    `${CONTEXT}/${dockerfile}`,
    ...(target === null ? [] : ["--target", target]),
    ...Object.entries(args).flatMap(([name, value]) => ["--build-arg", `${name}=${value}`]),
    ...secrets.flatMap((name) => ["--secret", `id=${name},src=${SECRETS}/${name}`]),
    CONTEXT,
  ];
  // One descriptor for output and errors, so that their order is kept.
  const buildah = spawn("/bin/sh", ["-c", 'exec "$@" 2>&1', "sh", "buildah", ...command], {
    cwd: CONTEXT,
    stdio: ["ignore", "pipe", "inherit"],
  });
  // When a step ends, buildah drops what it has not passed on yet. So its output must never wait for the service.
  const relay = pipeline(
    buildah.stdout,
    createWriteStream("", { fd: 1, autoClose: false, highWaterMark: AHEAD_BYTES_MAX }),
  ).catch(() => undefined);
  const [code] = (await once(buildah, "exit")) as [number | null];
  // What a step left running may hold the output open.
  await Promise.race([relay, sleep(LAST_OUTPUT_MS)]);
  if (code === 0) report(`image ${readFileSync(IMAGE_ID, "latin1").trim()}`);
  // PID 1 ends with this process, and with it whatever a step left running.
  process.exit(code ?? 1);
}
