// openapi.json and the page, inside the program.
        .section .rodata
        .global couplet_openapi
        .global couplet_openapi_end
        .global couplet_page
        .global couplet_page_end
couplet_openapi:
        .incbin "openapi.json"
couplet_openapi_end:
        .byte 0
couplet_page:
        .incbin "web/dist/index.html"
couplet_page_end:
        .byte 0
        .section .note.GNU-stack, "", @progbits
