/**
 * Rewrites the links of a Python index page (PEP 503 and PEP 691). A link with a sha256 leads to the cache. Any other link becomes absolute,
 * because the page has another address now. Links with a query stay outside: it may be a credential.
 */
import { isRecord, parseJson } from "../../ground/record.ts";
import { pypiFileAddress, urlSha256 } from "../../domain/environment/packages.ts";
import { Refusal } from "../egress-messages.ts";

/** @param sha256 the checksum that the page gives beside the link; null: the link has it, or has none */
const rewriteLink = (link: string, page: URL, sha256: string | null): string => {
  const url = URL.parse(link, page.href);
  if (url === null) return link;
  const checksum = sha256 ?? urlSha256(url);
  const isWeb = url.protocol === "https:" || url.protocol === "http:";
  if (checksum === null || !isWeb || url.search !== "" || url.username !== "" || url.password !== "")
    return url.href;
  return `${pypiFileAddress(url, checksum)}${sha256 === null ? url.hash : ""}`;
};

/** @throws Refusal if the page is not JSON of PEP 691 */
export const rewriteJson = (body: Buffer, page: URL): Buffer => {
  const document = parseJson(body.toString("utf8"));
  if (!isRecord(document)) throw new Refusal(502, `${page.host} sent an index page that cannot be read`);
  const { files } = document;
  if (!Array.isArray(files)) return body;
  for (const file of files as readonly unknown[]) {
    if (!isRecord(file) || typeof file["url"] !== "string") continue;
    const sha256 = isRecord(file["hashes"]) ? file["hashes"]["sha256"] : null;
    const hex = typeof sha256 === "string" && /^[0-9a-f]{64}$/i.test(sha256) ? sha256.toLowerCase() : null;
    file["url"] = rewriteLink(file["url"], page, hex);
  }
  return Buffer.from(JSON.stringify(document));
};

const unescapeHtml = (text: string): string => text.replaceAll("&amp;", "&");
const escapeHtml = (text: string): string => text.replaceAll("&", "&amp;").replaceAll('"', "&quot;");

/** A page whose links have a base of their own is left as it is if its links are absolute, and otherwise refused. */
export const rewriteHtml = (body: Buffer, page: URL): Buffer => {
  const text = body.toString("utf8");
  if (/<base\b/i.test(text))
    throw new Refusal(502, `${page.host} sent an index page with <base>, which is not supported`);
  return Buffer.from(
    text.replaceAll(
      /(\shref=)("[^"]*"|'[^']*')/gi,
      (_all, start: string, address: string) =>
        `${start}"${escapeHtml(rewriteLink(unescapeHtml(address.slice(1, -1)), page, null))}"`,
    ),
  );
};
