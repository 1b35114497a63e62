// Loaded before a program (`node --import`). At its end, it prints to standard error which descriptors its children
// would inherit.
import { readFileSync, readdirSync } from "node:fs";

const CLOSE_ON_EXEC = 0o2000000;

process.on("exit", () => {
  const passed = readdirSync("/proc/self/fd").filter((name) => {
    if (Number(name) < 3) return false;
    try {
      const flags = /^flags:\s+(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${name}`, "latin1"))?.[1] ?? "";
      return (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0;
    } catch {
      return false; // The listing's own descriptor.
    }
  });
  process.stderr.write(
    `passes on: ${passed
      .map(Number)
      .toSorted((a, b) => a - b)
      .join(" ")}.\n`,
  );
});
