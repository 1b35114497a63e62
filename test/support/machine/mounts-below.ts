/** Mounts that a container engine makes in its directory, and leaves there if it is killed. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** Unmounts everything below the directory, the newest mount first. */
export const unmountBelow = (directory: string): void => {
  const points = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .filter((point) => point.startsWith(`${directory}/`));
  for (const point of points.toReversed()) execFileSync("umount", ["-l", point]);
};
