/**
 * An agent runtime of a few lines, for PLATFORM_AGENT_COMMAND with the adapter `plain`: it says where it is asked, begins an
 * answer at `/endless` that has no end, and says back what comes over an upgraded connection. It has no blank, because the
 * setting is split at blanks.
 */
export const ECHO_AGENT = [
  'const/**/s=require("http").createServer((q,r)=>q.url=="/endless"?r.write("begun"):r.end("agent:"+q.url));',
  's.on("upgrade",(q,k)=>{k.write("HTTP/1.1\\x20101\\x20Switching\\r\\nconnection:\\x20upgrade\\r\\nupgrade:\\x20websocket\\r\\n\\r\\n");k.pipe(k)});',
  's.listen(4096,"127.0.0.1")',
].join("");
