import { mkdtempSync, readFileSync, rmSync, writeFileSync, mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { sshOptions } from "../../src/cli/commands/ssh/client.ts";
import { namedByHost, sshHost } from "../../src/domain/session/ssh-host.ts";
import { runHere } from "../support/service/command-line.ts";

let home = "";
beforeEach(() => {
  home = mkdtempSync(path.join(tmpdir(), "platform-ssh-"));
  // A key that exists is not made anew, so this needs no OpenSSH.
  mkdirSync(path.join(home, ".config/platform/ssh"), { recursive: true });
  writeFileSync(path.join(home, ".config/platform/ssh/id_ed25519"), "a key");
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

it("names a session as a host, and knows it again", () => {
  const host = sshHost("0190f3b2-0000-7000-8000-0000aaaaaaaa", "0190f3b2-0000-7000-8000-0000bbbbbbbb");
  expect(host).toBe("bbbbbbbb.aaaaaaaa.platform");
  expect(namedByHost(host)).toEqual({ session: "bbbbbbbb", project: "aaaaaaaa" });
  for (const other of ["platform", "a.platform", "a.b.c.platform", "a.b.example", ".b.platform"])
    expect(namedByHost(other)).toBeNull();
});

it("quotes how it is called for a shell and for OpenSSH", async () => {
  const options = new Map(await sshOptions(["/opt/no de", "/it's/100%"], { HOME: home }));
  expect(options.get("ProxyCommand")).toBe(String.raw`'/opt/no de' '/it'\''s/100%%' ssh-proxy %n`);
});

it("writes the configuration once, before the person's own", async () => {
  mkdirSync(path.join(home, ".ssh"));
  const main = path.join(home, ".ssh/config");
  writeFileSync(main, "Host mine\n  User me\n");
  for (let count = 0; count < 2; count += 1)
    // oxlint-disable-next-line no-await-in-loop -- the second finds the first one's work
    expect(await runHere(["ssh-config", "--write"], { env: { HOME: home } })).toMatchObject({ code: 0 });
  expect(readFileSync(main, "utf8")).toBe("Include platform.conf\nHost mine\n  User me\n");
  expect(readFileSync(path.join(home, ".ssh/platform.conf"), "utf8")).toContain(
    "Host *.platform\n  User agent\n",
  );
});

it("refuses a host that is no session's name", async () => {
  expect(await runHere(["ssh-proxy", "example.org"], { env: { HOME: home } })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("HOST must be SESSION.PROJECT.platform") as string,
  });
});
