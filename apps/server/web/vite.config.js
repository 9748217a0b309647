// One file: the script and the styles go into index.html, and its policy names them by their hashes, so that nothing else
// runs on the page and nothing is fetched from anywhere but this server.
import {createHash} from "node:crypto";
import {defineConfig} from "vite";

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

const oneFile = {
  name: "one-file",
  enforce: "post",
  generateBundle(_, bundle) {
    const page = bundle["index.html"];
    const take = (ending) => {
      const name = Object.keys(bundle).find((file) => file.endsWith(ending));
      const {code, source} = bundle[name];
      delete bundle[name];
      return String(code ?? source).trim();
    };
    const script = take(".js").replaceAll("</script", "<\\/script");
    const style = take(".css");
    const policy = [
      "default-src 'none'", "connect-src 'self'", "img-src data:", "base-uri 'none'", "form-action 'none'",
      `script-src ${hash(script)}`, `style-src ${hash(style)}`,
    ].join("; ");
    page.source = page.source
      .replace(/\s*<script[^>]*src=[^>]*><\/script>/, "")
      .replace(/\s*<link[^>]*rel="stylesheet"[^>]*>/, "")
      .replace("<!--policy-->", () => `<meta http-equiv="Content-Security-Policy" content="${policy}">`)
      .replace("</head>", () => `<style>${style}</style>\n</head>`)
      .replace("</body>", () => `<script type="module">${script}</script>\n</body>`);
  },
};

export default defineConfig({
  esbuild: {jsx: "automatic", jsxImportSource: "preact"},
  build: {target: "es2022", modulePreload: false, cssCodeSplit: false, assetsInlineLimit: 1 << 20, reportCompressedSize: false},
  plugins: [oneFile],
});
