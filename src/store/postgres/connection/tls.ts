/** What the address of the database says about TLS. */
import { readFileSync } from "node:fs";
import type { ConnectionOptions } from "node:tls";

/** The certificates that the address names in files. */
const certificateOptions = ({ searchParams }: URL): ConnectionOptions | null => {
  const contents = (name: string) => {
    const file = searchParams.get(name);
    return file === null ? undefined : readFileSync(file);
  };
  const [ca, cert, key] = [contents("sslrootcert"), contents("sslcert"), contents("sslkey")];
  return ca === undefined && cert === undefined && key === undefined ? null : { ca, cert, key };
};

/**
 * How a connection is encrypted. False: it is not. Every `sslmode` but `disable` and `no-verify` means that the server's
 * certificate is verified, as Postgres clients in Node have it. `uselibpqcompat` makes `require` and `verify-ca` with a
 * certificate of a root accept any name of the server.
 */
export const tlsOptions = (url: URL): ConnectionOptions | false => {
  const mode = url.searchParams.get("sslmode");
  const certificates = certificateOptions(url);
  if (mode === "disable" || (mode === null && certificates === null)) return false;
  if (mode === "no-verify") return { ...certificates, rejectUnauthorized: false };
  const isCompatible = url.searchParams.get("uselibpqcompat") === "true";
  const isAnyName = isCompatible && (mode === "require" || mode === "verify-ca");
  return { ...certificates, ...(isAnyName ? { checkServerIdentity: () => undefined } : {}) };
};
