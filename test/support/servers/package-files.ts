/** Packages made in memory: an npm tarball and a Python wheel with one module each. */
import { createHash } from "node:crypto";
import { crc32, gzipSync } from "node:zlib";

/** One file of a tar, in the ustar format. */
const tarEntry = (name: string, content: Buffer): Buffer => {
  const header = Buffer.alloc(512);
  header.write(name, 0);
  header.write("0000644\0", 100);
  header.write("0000000\0", 108);
  header.write("0000000\0", 116);
  header.write(`${content.length.toString(8).padStart(11, "0")}\0`, 124);
  header.write("00000000000\0", 136);
  header.write("        ", 148);
  header.write("0", 156);
  header.write("ustar\x0000", 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return Buffer.concat([header, content, Buffer.alloc((512 - (content.length % 512)) % 512)]);
};

/** @param bulk bytes that do not compress, which a package has in addition */
export const npmTarball = (name: string, version: string, bulk = Buffer.alloc(0)): Buffer =>
  gzipSync(
    Buffer.concat([
      tarEntry("package/package.json", Buffer.from(JSON.stringify({ name, version, main: "index.js" }))),
      tarEntry(
        "package/index.js",
        Buffer.from(`module.exports = ${JSON.stringify(`${name}@${version}`)};\n`),
      ),
      tarEntry("package/bulk", bulk),
      Buffer.alloc(1024),
    ]),
    { level: 1 },
  );

interface Entry {
  readonly name: string;
  readonly content: Buffer;
}

/** A zip whose files are stored as they are. */
const zip = (entries: readonly Entry[]): Buffer => {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const { name, content } of entries) {
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt32LE(0x00_21_00_00, 6);
    common.writeUInt32LE(crc32(content), 10);
    common.writeUInt32LE(content.length, 14);
    common.writeUInt32LE(content.length, 18);
    common.writeUInt16LE(name.length, 22);
    const local = Buffer.concat([Buffer.from("PK\x03\x04"), common, Buffer.from(name), content]);
    const central = Buffer.concat([
      Buffer.from("PK\x01\x02"),
      Buffer.from([20, 0]),
      common,
      Buffer.alloc(14),
      Buffer.from(name),
    ]);
    central.writeUInt32LE(offset, 42);
    parts.push(local);
    directory.push(central);
    offset += local.length;
  }
  const end = Buffer.alloc(22);
  end.write("PK\x05\x06", 0, "latin1");
  const size = directory.reduce((sum, { length }) => sum + length, 0);
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(size, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...parts, ...directory, end]);
};

/** @param bulk bytes that a module has in addition */
export const wheel = (name: string, version: string, bulk = Buffer.alloc(0)): Buffer => {
  const about = `${name}-${version}.dist-info`;
  const files: Entry[] = [
    { name: `${name}.py`, content: Buffer.from(`version = ${JSON.stringify(version)}\n`) },
    { name: `${name}_bulk.bin`, content: bulk },
    {
      name: `${about}/METADATA`,
      content: Buffer.from(`Metadata-Version: 2.1\nName: ${name}\nVersion: ${version}\n`),
    },
    {
      name: `${about}/WHEEL`,
      content: Buffer.from("Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"),
    },
  ];
  const record = [...files.map((file) => `${file.name},,`), `${about}/RECORD,,`, ""].join("\n");
  return zip([...files, { name: `${about}/RECORD`, content: Buffer.from(record) }]);
};

export const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
export const integrity = (bytes: Buffer): string =>
  `sha512-${createHash("sha512").update(bytes).digest("base64")}`;
