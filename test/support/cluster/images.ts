/** Images as the fake cluster's node has them. */
import { readdirSync } from "node:fs";
import { join } from "node:path";

/** A directory that has what an image has, and its variables. `host`: this machine's own programs. */
export type Image = { readonly root: string; readonly env?: Readonly<Record<string, string>> } | "host";

/** A container's runtime and a cluster set these, unless the image does. */
export const RUNTIME_VARIABLES = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  HOSTNAME: "pod",
  KUBERNETES_SERVICE_HOST: "10.0.0.1",
  KUBERNETES_PORT_443_TCP: "tcp://10.0.0.1:443",
};

/** Of these, mount points are made in a copy of the directory, as a container's runtime does. */
const OPENED = new Set(["/usr", "/etc"]);
/** Made anew by the Pod's own mounts. */
const REPLACED = new Set(["/usr/local", "/etc/passwd", "/etc/group"]);
const HOST_ROOT = ["usr", "bin", "lib", "lib64", "sbin", "etc"];

const readOnly = (source: string, target: string): string[] =>
  REPLACED.has(target) ? [] : ["--ro-bind-try", source, target];

/** The first level of an image's root. */
export const rootOf = (image: Image): string[] => {
  const root = image === "host" ? "/" : image.root;
  const names = image === "host" ? HOST_ROOT : readdirSync(root);
  return names.flatMap((name) => {
    const source = join(root, name);
    const target = `/${name}`;
    if (!OPENED.has(target)) return readOnly(source, target);
    return readdirSync(source).flatMap((entry) => readOnly(join(source, entry), `${target}/${entry}`));
  });
};
