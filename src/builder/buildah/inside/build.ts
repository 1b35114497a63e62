/**
 * The first phase of a build, in its sandbox: unpacks the context from standard input and runs buildah. It ends with
 * buildah's exit code, and reports the image's id if buildah succeeded.
 */
import { spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { readRequest, report } from "./reports.ts";

const CONTEXT = "/build/scratch/context";
const IMAGE_ID = "/build/scratch/image-id";

const { dockerfile, target, args } = readRequest();
report("up");

const unpacked = spawnSync("tar", ["--extract", "--file=-", `--directory=${CONTEXT}`], {
  stdio: ["inherit", "ignore", "inherit"],
});

if (unpacked.status === 0) {
  report("context");
  const command = [
    "--storage-driver",
    "overlay",
    "--registries-conf",
    "/etc/containers/registries.conf",
    "build",
    "--signature-policy",
    "/etc/containers/policy.json",
    "--layers",
    "--force-rm",
    "--network",
    "host",
    "--iidfile",
    IMAGE_ID,
    "--file",
    `${CONTEXT}/${dockerfile}`,
    ...(target === null ? [] : ["--target", target]),
    ...Object.entries(args).flatMap(([name, value]) => ["--build-arg", `${name}=${value}`]),
    CONTEXT,
  ];
  // One descriptor for both, so that their order is kept.
  const buildah = spawn("buildah", command, { cwd: CONTEXT, stdio: ["ignore", 1, 1] });
  buildah.on("exit", (code) => {
    if (code === 0) report(`image ${readFileSync(IMAGE_ID, "latin1").trim()}`);
    // PID 1 ends with this process, and with it whatever a step left running.
    process.exit(code ?? 1);
  });
}
