import { describe, expect, it } from "vitest";
import {
  npmAddress,
  npmVersionPath,
  PYPI_INDEX,
  pypiFileAddress,
  readIntegrity,
  readNpmTarball,
  readPypiFile,
  readPypiProject,
  urlSha256,
} from "../../../src/domain/environment/packages.ts";

const HEX = "ab".repeat(32);

describe("the path of an npm tarball", () => {
  it.each([
    ["/ms/-/ms-2.1.3.tgz", { name: "ms", version: "2.1.3" }, "/ms/2.1.3"],
    ["/a-b/-/a-b-1.0.0-rc.1.tgz", { name: "a-b", version: "1.0.0-rc.1" }, "/a-b/1.0.0-rc.1"],
    ["/@a/b/-/b-1.0.0+x.tgz", { name: "@a/b", version: "1.0.0+x" }, "/@a%2fb/1.0.0%2Bx"],
    ["/@a%2Fb/-/b-1.0.0.tgz", { name: "@a/b", version: "1.0.0" }, "/@a%2fb/1.0.0"],
  ])("%s names a version", (path, expected, description) => {
    expect(readNpmTarball(path)).toEqual(expected);
    expect(npmVersionPath(expected)).toBe(description);
  });

  it.each([
    "ms/-/ms-2.1.3.tgz",
    "/ms",
    "/../-/..-1.0.0.tgz",
    "/ms/-/ms-latest.tgz",
    "/ms/-/ms-1.0.0.tgz/-/x-1.0.0.tgz",
    "/@a/../-/..-1.0.0.tgz",
    "/a/b/-/b-1.0.0.tgz",
    "/ms/-/ms-1.0.0.tar",
    "/ms/-/ms-1.0.0/../2.0.0.tgz",
    `/${"a".repeat(215)}/-/${"a".repeat(215)}-1.0.0.tgz`,
  ])("%s names none [E22]", (path) => expect(readNpmTarball(path)).toBeNull());
});

describe("a checksum", () => {
  it("of npm is one sha512 among others", () => {
    const sha512 = `sha512-${Buffer.alloc(64, 1).toString("base64")}`;
    expect(readIntegrity(`sha1-AAAA ${sha512}`)).toEqual({ algorithm: "sha512", hex: "01".repeat(64) });
    for (const wrong of ["", "sha1-AAAA", "sha512-AAAA", `${sha512} ${sha512}`])
      expect(readIntegrity(wrong)).toBeNull();
  });

  it("of a link is its fragment", () => {
    expect(urlSha256(new URL(`https://x.test/a#sha256=${HEX.toUpperCase()}`))).toBe(HEX);
    for (const wrong of ["", "#md5=ab", "#sha256=ab", `#sha256=${HEX}&x=1`])
      expect(urlSha256(new URL(`https://x.test/a${wrong}`))).toBeNull();
  });
});

describe("an address in sandboxes", () => {
  it("of the npm registry differs in its scheme alone", () => {
    expect(npmAddress("https://npm.example.com:8443/npm")).toBe("http://npm.example.com:8443/npm/");
  });

  it("of a Python file leads back to the file", () => {
    const url = new URL("https://files.example.com/a/b-1.0.0.whl");
    const read = readPypiFile(new URL(pypiFileAddress(url, HEX)).pathname);
    expect(read).toMatchObject({ checksum: { algorithm: "sha256", hex: HEX }, isMetadata: false });
    expect(read?.url.href).toBe(url.href);
  });

  it("of a Python project is a name below the index", () => {
    const { pathname } = new URL(PYPI_INDEX);
    expect([readPypiProject(`${pathname}six/`), readPypiProject(pathname)]).toEqual(["six/", ""]);
    for (const wrong of ["six", "../../", "a/b/", "a%2f/"])
      expect(readPypiProject(`${pathname}${wrong}`)).toBeNull();
  });
});
