import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { checkSource } from "../../src/git/upstream/source.ts";

describe("the source of an import", () => {
  const refused = [
    "ext::sh -c id",
    "file:///etc",
    "git://example.org/x.git",
    "ssh://git@example.org/x.git",
    "git@example.org:x.git",
    "-oProxyCommand=id",
    "--upload-pack=id",
    "http://example.org/x.git",
    "https://user:pw@127.0.0.1/x.git",
    "https://user@127.0.0.1/x.git",
    "https:///x.git",
    "https:/x.git",
    "https://",
    "https://127.0.0.1/x\n.git",
    "https://127.0.0.1/x.git?service=x",
    "https://127.0.0.1/x.git#x",
    "https://127.0.0.1/x.git",
    "https://127.1/x.git",
    "https://2130706433/x.git",
    "https://0x7f.1/x.git",
    "https://0/x.git",
    "https://localhost/x.git",
    "https://[::1]/x.git",
    "https://[::ffff:127.0.0.1]/x.git",
    "https://10.0.0.1/x.git",
    "https://169.254.169.254/latest",
    "https://[fd00:ec2::254]/x.git",
    "relative/path",
    "",
  ];

  it.live.each(refused)("is refused: %j [G03]", (text) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(checkSource(text, []));
      expect(error.code).toBe("import_failed");
      expect(error.message).not.toContain("pw");
    }),
  );

  it.live("may be a public address over https, or a path that the caller has allowed [G03]", () =>
    Effect.gen(function* () {
      expect(yield* checkSource("https://8.8.8.8/a/b.git", [])).toEqual({
        protocol: "https",
        address: "https://8.8.8.8/a/b.git",
        config: {},
      });
      expect(yield* checkSource("/srv/git/x.git", [])).toEqual({
        protocol: "file",
        address: "/srv/git/x.git",
        config: {},
      });
    }),
  );

  it.live(
    "may be an internal host over http if the operator allows it, and the looked-up address is dialled [G03]",
    () =>
      Effect.gen(function* () {
        const source = yield* checkSource("http://localhost:3000/x.git", ["localhost"]);
        expect(source.protocol).toBe("http");
        expect(source.config["http.curloptResolve"]).toMatch(/^localhost:3000:(?:127\.0\.0\.1|\[::1\])$/);
      }),
  );
});
