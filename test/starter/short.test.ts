import { expect, it } from "vitest";
import { runShort } from "../../src/starter/short.ts";

const KEEP = { stream: 1, bytesMax: 65_536 } as const;

it("a short program's output and exit code are its caller's", async () => {
  expect(await runShort(["sh", "-c", "echo one; echo two >&2; exit 3"], KEEP)).toEqual({
    code: 3,
    text: "one\n",
  });
  expect(await runShort(["sh", "-c", "echo one; echo two >&2"], { ...KEEP, stream: 2 })).toEqual({
    code: 0,
    text: "two\n",
  });
});

it("a short program that a signal ends has no code", async () => {
  expect(await runShort(["sh", "-c", "kill -9 $$"], KEEP)).toEqual({ code: null, text: "" });
});

it("a short program is not started by this process, and gets only PATH of its variables", async () => {
  process.env["A_SECRET_OF_THE_SERVICE"] = "a value";
  try {
    const { text } = await runShort(["sh", "-c", "echo $PPID; env"], KEEP);
    expect(Number.parseInt(text, 10)).not.toBe(process.pid);
    expect(text).not.toContain("A_SECRET_OF_THE_SERVICE");
    expect(text).toContain(`PATH=${process.env["PATH"] ?? ""}`);
  } finally {
    delete process.env["A_SECRET_OF_THE_SERVICE"];
  }
});

it("a short program's long output is read to its end, and only its beginning is kept", async () => {
  const { code, text } = await runShort(["sh", "-c", "head -c 5000000 /dev/zero"], KEEP);
  expect(code).toBe(0);
  expect(text.length).toBeGreaterThanOrEqual(65_536);
  expect(text.length).toBeLessThan(200_000);
});

it("a short program that is missing is an error with the system's code", async () => {
  await expect(runShort(["no-such-program-here"], KEEP)).rejects.toMatchObject({ code: "ENOENT" });
});
